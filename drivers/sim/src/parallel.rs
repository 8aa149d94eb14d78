//! Work on several threads whose results do not depend on their number.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `work(item)` of each item, in their order.
pub fn map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if threads <= 1 || items.len() <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(item) = items.get(index)
                {
                    *results[index].lock().expect("no thread has panicked") = Some(work(item));
                }
            });
        }
    });
    let results = results.into_iter().map(|cell| {
        let result = cell.into_inner().expect("no thread has panicked");
        result.expect("all items were worked on")
    });
    results.collect()
}
