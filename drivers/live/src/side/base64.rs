//! Files inside of a JSON document: RFC 4648, section 4, with its padding.

/// The bytes behind `text`; nothing if it is not what an encoder makes.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let padding = bytes
        .iter()
        .rev()
        .take(2)
        .take_while(|&&it| it == b'=')
        .count();
    let mut content = Vec::with_capacity(bytes.len() / 4 * 3);
    for (index, four) in bytes.chunks_exact(4).enumerate() {
        let is_last = index == bytes.len() / 4 - 1;
        let left = if is_last { 4 - padding } else { 4 };
        let mut group = 0;
        for (place, &letter) in four.iter().enumerate() {
            let value = if place < left { value(letter)? } else { 0 };
            group = group << 6 | value;
        }
        let [_, three @ ..] = group.to_be_bytes();
        let (kept, spare) = three.split_at(left - 1);
        // Bits of the last letter that no byte needs are zero.
        if spare.iter().any(|&byte| byte != 0) {
            return None;
        }
        content.extend(kept);
    }
    Some(content)
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn the_vectors_of_the_standard_are_read() {
        // RFC 4648, section 10.
        let vectors = [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ];
        for (text, content) in vectors {
            assert_eq!(decode(text).as_deref(), Some(content.as_bytes()), "{text}");
        }
        assert_eq!(decode("+/8A").unwrap(), [0xfb, 0xff, 0]);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "Zg", "Zg=", "Zg===", "=Zg=", "Zg==Zg==", "Zh==", "Zm9=", "Zm 9", "====", "Zm9\n",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
