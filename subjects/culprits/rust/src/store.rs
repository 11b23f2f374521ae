//! A store of values that a background thread refreshes, and readers of its values.

use crate::keys::mix;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const VALUES: u64 = 64;
/// Latency of the source, and the interval between refreshes.
const ANSWER: Duration = Duration::from_micros(300);
const FRESH: Duration = Duration::from_micros(50);

/// Values behind a lock.
#[derive(Debug)]
pub struct Store(Arc<Mutex<Vec<u64>>>);

/// Opens a store, which is never closed. Its thread fetches new values before it takes the lock, or while it holds
/// the lock with `lock_first`.
#[unsafe(no_mangle)]
pub extern "C" fn store_open(lock_first: bool) -> *const Store {
    let values = Arc::new(Mutex::new((0..VALUES).collect()));
    let theirs = Arc::clone(&values);
    thread::spawn(move || refresh(&theirs, lock_first));
    Box::into_raw(Box::new(Store(values)))
}

fn refresh(values: &Mutex<Vec<u64>>, lock_first: bool) {
    loop {
        if lock_first {
            let mut values = lock(values);
            *values = fetch();
        } else {
            let fresh = fetch();
            *lock(values) = fresh;
        }
        thread::sleep(FRESH);
    }
}

/// Fetches values from a simulated slow source.
fn fetch() -> Vec<u64> {
    thread::sleep(ANSWER);
    (0..VALUES).collect()
}

/// Reads values one by one and returns the sum of the mixed values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn store_read(store: *const Store, times: u64) -> u64 {
    // SAFETY: a store is never closed.
    let store = unsafe { &*store };
    (0..times)
        .map(|i| {
            let key = lock(&store.0)[(i % VALUES) as usize];
            u64::from(mix(key))
        })
        .sum()
}

fn lock(values: &Mutex<Vec<u64>>) -> MutexGuard<'_, Vec<u64>> {
    values.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_way_of_keeping_it_fresh_gives_the_same_values() {
        let read = |lock_first| {
            let store = store_open(lock_first);
            // SAFETY: the store was just opened.
            unsafe { store_read(store, 1000) }
        };
        assert_eq!(read(false), read(true));
    }
}
