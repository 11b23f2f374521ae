//! Two traces of the same work: where one lags, on which operations, and why.

pub mod found;
