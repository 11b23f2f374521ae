"""Functions on lists of words."""


def longest_run(words):
    """Length of the longest run of words with non-decreasing length."""
    longest = run = before = 0
    for word in words:
        run = run + 1 if len(word) >= before else 1
        before = len(word)
        longest = max(longest, run)
    return longest
