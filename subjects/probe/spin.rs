//! A Rust program that spends its time in a method of a generic type.

use std::time::{Duration, Instant};

struct Wheel<T>(T);

trait Turn {
    fn turn(&mut self) -> u64;
}

impl Turn for Wheel<u64> {
    #[inline(never)]
    fn turn(&mut self) -> u64 {
        for i in 0..1000u64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(i);
        }
        std::hint::black_box(self.0)
    }
}

#[inline(never)]
fn spin(wheel: &mut dyn Turn, time: Duration) -> u64 {
    let start = Instant::now();
    let mut sum = 0u64;
    while start.elapsed() < time {
        sum = sum.wrapping_add(wheel.turn());
    }
    sum
}

fn main() {
    let time = std::env::args().nth(1).and_then(|ms| ms.parse().ok()).unwrap_or(200);
    println!("{}", spin(&mut Wheel(1), Duration::from_millis(time)));
}
