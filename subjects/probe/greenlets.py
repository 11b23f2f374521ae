"""Two greenlets that alternate."""
import greenlet


def burn(n=20_000):
    total = 0.0
    for i in range(n):
        total += i * 0.5


def first():
    for _ in range(150):
        burn()
        two.switch()


def second():
    for _ in range(150):
        burn()
        one.switch()


one, two = greenlet.greenlet(first), greenlet.greenlet(second)
one.switch()
