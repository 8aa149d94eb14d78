//! The comment at the head of a C file, which is the page that explains the program.

/// The first comment of `text` without its marks; a line that names the licence is not part of it.
pub(crate) fn page(text: &str) -> String {
    let mut rest = text.trim_start();
    loop {
        let (comment, after) = first_comment(rest);
        if comment.contains("SPDX-License-Identifier") && !comment.trim().contains('\n') {
            rest = after.trim_start();
        } else {
            return comment.trim().to_owned();
        }
    }
}

/// The block comment at the start of `text`, and the remaining text.
fn first_comment(text: &str) -> (String, &str) {
    if let Some((comment, after)) = text.strip_prefix("/*").and_then(|it| it.split_once("*/")) {
        let lines = comment.lines().map(|line| {
            let line = line.trim();
            let line = line.strip_prefix('*').unwrap_or(line);
            line.strip_prefix(' ').unwrap_or(line)
        });
        return (lines.collect::<Vec<_>>().join("\n"), after);
    }
    if let Some(line) = text.strip_prefix("//") {
        let (line, after) = line.split_once('\n').unwrap_or((line, ""));
        return (line.to_owned(), after);
    }
    (String::new(), "")
}

/// The text behind `word` at the beginning of a sentence, until the paragraph ends or `until`
/// begins, in one line.
pub(crate) fn passage(page: &str, word: &str, until: &str) -> Option<String> {
    let paragraph = page.split("\n\n").find(|it| it.contains(word))?;
    let (_, text) = paragraph.split_once(word)?;
    let text = text.split(until).next().unwrap_or(text);
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_comment_is_the_page() {
        let text = "/* SPDX-License-Identifier: MIT */\n/*\n * x: does y.\n *\n * Provenance: a\n *   paper. Deviations: none.\n */\n#include <z>\n/* more */\n";
        assert_eq!(
            page(text),
            "x: does y.\n\nProvenance: a\n  paper. Deviations: none."
        );
        let slashes = text.replace(
            "/* SPDX-License-Identifier: MIT */",
            "// SPDX-License-Identifier: MIT",
        );
        assert_eq!(page(&slashes), page(text));
        let found = passage(&page(text), "Provenance:", "Deviations:");
        assert_eq!(found.as_deref(), Some("a paper."));
        assert_eq!(passage("x", "Provenance:", "Deviations:"), None);
        assert_eq!(page("int x;"), "");
        assert_eq!(page("/* never ends"), "");
    }
}
