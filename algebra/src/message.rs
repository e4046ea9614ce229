//! Bounded texts in error messages.
//!
//! An error message has at most [`LIMIT`] bytes for any input. Fields without a bound of their own (shapes, names, lists,
//! texts of other errors) are written with a function of this module.
//!
//! ```
//! use t4a_algebra::message::{first, short};
//!
//! let shape = vec![2; 40];
//! let text = format!("sum: shape {:?} is not accepted", short(&shape));
//! assert!(text.starts_with("sum: shape [2, 2,") && text.ends_with(", 2] is not accepted"));
//! assert!(text.len() < 150);
//! assert_eq!(first(&[3, 1, 4, 1], "; ", |n| format!("tag {n}")), "tag 3; tag 1; and 2 more");
//! ```

use std::fmt::{self, Debug, Display, Write};

/// Maximum number of bytes of an error message.
pub const LIMIT: usize = 500;

/// A value whose text is cut in the middle to a number of bytes, between elements of a list where possible.
#[derive(Clone, Copy)]
pub struct Cut<'a, T: ?Sized> {
    value: &'a T,
    bytes: usize,
}

/// A value whose text is cut to the part around its first difference from the text of another value.
#[derive(Clone, Copy)]
pub struct Differing<'a, T: ?Sized> {
    value: &'a T,
    other: &'a T,
}

/// Text of `value` in at most `bytes` bytes, at least 16.
pub fn cut<T: ?Sized>(value: &T, bytes: usize) -> Cut<'_, T> {
    Cut { value, bytes: bytes.max(16) }
}

/// A shape, a name or a list in at most 96 bytes.
pub fn short<T: ?Sized>(value: &T) -> Cut<'_, T> {
    cut(value, 96)
}

/// The text of another error, or a sentence, in at most 400 bytes.
pub fn long<T: ?Sized>(value: &T) -> Cut<'_, T> {
    cut(value, 400)
}

/// Text of `value` from shortly before its first difference from that of `other`, in at most 150 bytes; all of it if it
/// is that short.
pub fn differing<'a, T: ?Sized>(value: &'a T, other: &'a T) -> Differing<'a, T> {
    Differing { value, other }
}

/// The items in order, except that the first one whose key differs from that of item 0 becomes the second.
pub fn conflicting<T, K: PartialEq>(items: &[T], key: impl Fn(&T) -> K) -> Vec<&T> {
    let mut items: Vec<&T> = items.iter().collect();
    if let Some(at) = items.iter().position(|item| key(item) != key(items[0])) {
        let item = items.remove(at);
        items.insert(1, item);
    }
    items
}

/// The first two items of a list and the number of the others, in at most 350 bytes.
pub fn first<T>(items: &[T], separator: &str, text: impl Fn(&T) -> String) -> String {
    let mut texts: Vec<String> =
        items.iter().take(2).map(|item| cut(&text(item), 156).to_string()).collect();
    if items.len() > texts.len() {
        texts.push(format!("and {} more", items.len() - texts.len()));
    }
    texts.join(separator)
}

impl<T: ?Sized + Display> Display for Cut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut window = TextEnds::new(self.bytes);
        write!(window, "{}", self.value)?;
        window.finish(f)
    }
}

impl<T: ?Sized + Debug> Debug for Cut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut window = TextEnds::new(self.bytes);
        write!(window, "{:?}", self.value)?;
        window.finish(f)
    }
}

impl<T: ?Sized + Display> Display for Differing<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        from_difference(&self.value.to_string(), &self.other.to_string(), f)
    }
}

impl<T: ?Sized + Debug> Debug for Differing<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        from_difference(&format!("{:?}", self.value), &format!("{:?}", self.other), f)
    }
}

fn from_difference(text: &str, other: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    /// Maximum number of bytes, and of those before the difference.
    const BYTES: usize = 150;
    const BEFORE: usize = 40;
    let same = text.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    if text.len() <= BYTES || same <= BEFORE {
        return write!(f, "{}", cut(text, BYTES));
    }
    let rest = &text[text.ceil_char_boundary(same - BEFORE)..];
    write!(f, "… {}", cut(after_separator(rest), BYTES - "… ".len()))
}

/// Writer that keeps the beginning and the end of a text, so that its memory is bounded too.
struct TextEnds {
    bytes: usize,
    /// The first `bytes` bytes.
    head: String,
    /// The last bytes after `head`, at least `bytes` of them if there are so many.
    tail: String,
}

/// Replacement of the middle of a text, 5 bytes.
const GAP: &str = " … ";

impl TextEnds {
    fn new(bytes: usize) -> Self {
        Self { bytes, head: String::new(), tail: String::new() }
    }

    fn finish(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tail.is_empty() {
            return f.write_str(&self.head);
        }
        // A quarter for the end: it closes brackets, and is where the elements of a list end.
        let end = self.bytes / 4;
        let begin = self.bytes - GAP.len() - end;
        let all = self.head + &self.tail;
        f.write_str(before_separator(&all[..all.floor_char_boundary(begin)]))?;
        f.write_str(GAP)?;
        f.write_str(after_separator(&all[all.ceil_char_boundary(all.len() - end)..]))
    }
}

impl Write for TextEnds {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = match self.tail.is_empty() {
            true => text.floor_char_boundary((self.bytes - self.head.len()).min(text.len())),
            false => 0,
        };
        self.head += &text[..room];
        self.tail += &text[room..];
        if self.tail.len() > 4 * self.bytes {
            self.tail.drain(..self.tail.floor_char_boundary(self.tail.len() - 2 * self.bytes));
        }
        Ok(())
    }
}

/// The text up to a comma or space in its second half.
fn before_separator(text: &str) -> &str {
    match text.rfind([',', ' ']) {
        Some(at) if 2 * at > text.len() => text[..=at].trim_end(),
        _ => text,
    }
}

/// The text from the first comma or space in its first half on.
fn after_separator(text: &str) -> &str {
    match text.find([',', ' ']) {
        Some(at) if 2 * at < text.len() => text[at + 1..].trim_start(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_within_the_limit_are_unchanged() {
        for text in ["", "a", "sector 3", &"x".repeat(96), &"π".repeat(48)] {
            assert_eq!(short(text).to_string(), text);
        }
        assert_eq!(format!("{:?}", short(&vec![1, 20, 300])), "[1, 20, 300]");
    }

    #[test]
    fn longer_texts_keep_their_ends_and_are_bounded() {
        for count in [33, 34, 1000, 100_000] {
            let list: Vec<usize> = (0..count).collect();
            let text = format!("{:?}", short(&list));
            assert!(text.len() <= 96, "{} bytes: {text}", text.len());
            assert!(text.starts_with("[0, 1, 2, ") && text.contains(", … "), "{text}");
            // Numbers are not cut: each one shown is an element.
            let words = text.trim_matches(['[', ']']).split(", ").flat_map(|word| word.split(' '));
            let numbers: Vec<usize> =
                words.filter(|&word| word != "…").map(|word| word.parse().unwrap()).collect();
            assert!(numbers.iter().all(|&n| n < count), "{text}");
            assert_eq!(numbers.last(), Some(&(count - 1)));
            assert!(numbers.len() > 15);
        }
        for letter in ["a", "π", "…", "𝄞"] {
            for bytes in 16..120 {
                let text = cut(&letter.repeat(100_000), bytes).to_string();
                assert!(text.len() <= bytes && text.len() + 8 > bytes, "{bytes}: {text}");
            }
        }
    }

    #[test]
    fn writes_of_any_size_give_the_same_text() {
        /// Writes a text in pieces of a number of characters.
        struct Pieces<'a>(&'a str, usize);
        impl Display for Pieces<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let letters: Vec<char> = self.0.chars().collect();
                letters.chunks(self.1).try_for_each(|piece| f.write_str(&String::from_iter(piece)))
            }
        }
        let text: String = (0..3000).map(|i| format!("λ{i}, ")).collect();
        for size in [1, 7, 95, 96, 97, 1000, 100_000] {
            assert_eq!(short(&Pieces(&text, size)).to_string(), short(&text).to_string());
        }
    }

    #[test]
    fn differences_are_shown() {
        let mut other: Vec<usize> = (0..100_000).collect();
        let list = other.clone();
        other[70_000] = 5;
        let texts =
            [(&list, &other), (&other, &list)].map(|(a, b)| format!("{:?}", differing(a, b)));
        assert!(texts.iter().all(|text| text.len() <= 150 && text.starts_with("… ")), "{texts:?}");
        assert!(texts[0].contains("69999, 70000, 70001, "), "{texts:?}");
        assert!(texts[1].contains("69999, 5, 70001, "), "{texts:?}");
        // A text that is a prefix of the other one.
        let text = format!("{:?}", differing(&list[..50_000], &list));
        assert!(text.ends_with("49998, 49999]") && text.len() <= 150, "{text}");
        assert_eq!(differing("a tree", "a tree of leaves").to_string(), "a tree");
        let pi = "π".repeat(1000);
        let text = differing(&*(pi.clone() + "a"), &(pi + "b")).to_string();
        assert!(text.ends_with("πa") && text.len() <= 150, "{text}");
    }

    #[test]
    fn conflicts_are_among_the_first_items() {
        assert_eq!(conflicting(&[3, 3, 3, 4, 3], |&n| n), [&3, &4, &3, &3, &3]);
        assert_eq!(conflicting(&[3, 3], |&n| n), [&3, &3]);
        assert_eq!(conflicting(&[], |n: &i32| *n), [] as [&i32; 0]);
    }

    #[test]
    fn lists_are_bounded() {
        let items = vec!["leaf ".repeat(1000); 1000];
        let text = first(&items, "; ", String::clone);
        assert!(text.len() <= 350 && text.ends_with("; and 998 more"), "{text}");
        assert_eq!(first(&[1, 2], ", ", i32::to_string), "1, 2");
        assert_eq!(first(&[], ", ", i32::to_string), "");
    }
}
