//! A store of values that a thread of its own keeps fresh, and readers that take values out.

use crate::keys::mix;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const VALUES: u64 = 64;
/// How long the source of the values takes to answer, and how long the store is content with the answer.
const ANSWER: Duration = Duration::from_micros(300);
const FRESH: Duration = Duration::from_micros(50);

/// Values behind a lock.
#[derive(Debug)]
pub struct Store(Arc<Mutex<Vec<u64>>>);

/// Opens a store, for the rest of the process. Its thread asks for new values before it takes the lock, or with
/// `lock_first` after.
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

/// Asks the source, which is elsewhere and takes its time.
fn fetch() -> Vec<u64> {
    thread::sleep(ANSWER);
    (0..VALUES).collect()
}

/// Takes values out one by one; gives the sum of them, mixed.
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
            // SAFETY: just opened.
            unsafe { store_read(store, 1000) }
        };
        assert_eq!(read(false), read(true));
    }
}
