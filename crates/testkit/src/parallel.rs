//! One piece of work on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a function returns for each item, in the items' order. A processor that is done takes the next item.
///
/// # Panics
///
/// When the function panics for an item.
pub fn map<'t, T: Sync, R: Send>(items: &'t [T], work: impl Fn(&'t T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    done.lock().expect("no panic before").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic before");
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
