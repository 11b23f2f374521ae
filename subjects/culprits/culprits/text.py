"""Words of a text."""


def longest_run(words):
    """The most words in a row that get no shorter."""
    longest = run = before = 0
    for word in words:
        run = run + 1 if len(word) >= before else 1
        before = len(word)
        longest = max(longest, run)
    return longest
