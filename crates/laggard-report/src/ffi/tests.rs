//! What is shown of made-up runs.
