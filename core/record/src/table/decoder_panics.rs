//! Decoders of foreign formats may have bugs: a file that makes one panic is treated as damaged; it neither ends the
//! program nor prints a message that only the decoder's authors understand.

use crate::RecordError;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// The error of a file that is not what its writer has written.
pub(crate) fn damage_error(file: &str, detail: &str) -> RecordError {
    RecordError::data(
        file,
        format!("the file is damaged or not complete ({detail})"),
    )
}

/// Runs a decoder; a panic becomes the error of a damaged `file` and is not printed.
pub(crate) fn guarded<T>(file: &'static str, decode: impl FnOnce() -> T) -> Result<T, RecordError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = take_hook();
        set_hook(Box::new(move |panic| {
            if !DECODING.get() {
                told(panic);
            }
        }));
    });
    let outer = DECODING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(outer);
    result.map_err(|_| damage_error(file, "the decoder found a contradiction"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_decoder_is_an_error_of_the_file() {
        let error = guarded("packets.parquet", || -> u32 {
            panic!("a bug of the decoder")
        });
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("packets.parquet") && text.contains("damaged"),
            "{text}"
        );
        assert!(!DECODING.get(), "later panics are printed");
    }
}
