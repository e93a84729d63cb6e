//! A hex dump of the beginning of a binary file: offsets, bytes, and characters.

use super::rich::{RichLine, Seg};
use crate::theme::Role;

/// Formats rows of 16 bytes, or of 8 if the width does not suffice.
pub fn hex(bytes: &[u8], width: u16) -> Vec<RichLine> {
    let per_row = if width >= 76 { 16 } else { 8 };
    let row = |(at, chunk): (usize, &[u8])| {
        let mut digits = String::new();
        for column in 0..per_row {
            if column == 8 {
                digits.push(' ');
            }
            match chunk.get(column) {
                Some(byte) => digits.extend([digit(byte >> 4), digit(byte & 15), ' ']),
                None => digits.push_str("   "),
            }
        }
        let letters: String =
            chunk.iter().map(|b| if b.is_ascii_graphic() { char::from(*b) } else { '.' }).collect();
        RichLine::from_segs(vec![
            Seg::new(format!("{:06x}  ", at * per_row), Role::Muted),
            Seg::new(digits, Role::CodeNumber),
            Seg::new(format!(" {letters}"), Role::CodeString),
        ])
    };
    bytes.chunks(per_row).enumerate().map(row).collect()
}

fn digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_align_whatever_the_last_one_holds() {
        let lines = hex(b"\x89PNG\r\n\x1a\n\0\0", 60);
        let text_of_line: Vec<String> = lines.iter().map(RichLine::plain_text).collect();
        assert_eq!(text_of_line[0], "000000  89 50 4e 47 0d 0a 1a 0a  .PNG....");
        assert_eq!(text_of_line[1], "000008  00 00                    ..");
    }
}
