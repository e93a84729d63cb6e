//! Text inside markup that it cannot leave: escaping for XML 1.0 (<https://www.w3.org/TR/xml/>).

/// Text for an element or a quoted attribute: `<`, `>`, `&` and quotes as entities.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(allowed(c)),
        }
    }
    out
}

/// A whole text as CDATA, byte for byte readable; the one sequence that would end it is split in two sections.
#[must_use]
pub fn cdata(text: &str) -> String {
    let clean: String = text.chars().map(allowed).collect();
    format!("<![CDATA[{}]]>", clean.replace("]]>", "]]]]><![CDATA[>"))
}

/// XML 1.0 knows no control characters beside tab and line ends (section 2.2).
fn allowed(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' => c,
        '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_closes_its_element() {
        assert_eq!(
            escaped("</skill><skill name=\"x\">&"),
            "&lt;/skill&gt;&lt;skill name=&quot;x&quot;&gt;&amp;"
        );
        let hostile = "a</skill></active_skills>]]></skill>\u{0}";
        let wrapped = cdata(hostile);
        let inside = wrapped.strip_prefix("<![CDATA[").unwrap().strip_suffix("]]>").unwrap();
        // Undone the way a parser does it: sections joined.
        let joined = inside.replace("]]]]><![CDATA[>", "]]>");
        assert_eq!(joined, hostile.replace('\u{0}', "\u{fffd}"));
        assert_eq!(wrapped.matches("]]>").count(), 2, "{wrapped}");
    }

    #[test]
    fn plain_text_keeps_its_bytes() {
        assert_eq!(cdata("# A < B & \"C\"\n"), "<![CDATA[# A < B & \"C\"\n]]>");
    }
}
