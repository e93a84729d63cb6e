//! Renders a text for drawing: Markdown, or code with an available grammar. Runs off the UI task.

use super::rich::RichLine;
use super::wrap::break_code;
use super::{code, markdown};
use crate::pane::RenderJob;

/// Executes a render job. Every line contains the source line it begins in.
pub fn render(job: &RenderJob) -> Vec<RichLine> {
    match job.syntax.as_str() {
        "markdown" => markdown::render(&job.text, job.width, job.ascii),
        syntax => code_lines(&job.text, syntax, job.width),
    }
}

fn code_lines(text: &str, syntax: &str, width: u16) -> Vec<RichLine> {
    let mut out = Vec::new();
    for (index, segs) in code::highlight(text, syntax).iter().enumerate() {
        for (part, segs) in break_code(segs, width).into_iter().enumerate() {
            let source = if part == 0 { index as u32 + 1 } else { 0 };
            out.push(RichLine { segs, band: None, source });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn long_line_of_code_wraps_and_keeps_its_number() {
        let text: Arc<str> = "name: a-long-name\nb: c\n".into();
        let lines = render(&RenderJob { key: 1, text, syntax: "yaml".to_owned(), width: 10, ascii: false });
        let seen: Vec<(u32, String)> = lines.iter().map(|l| (l.source, l.plain_text())).collect();
        assert_eq!(
            seen,
            [(1, "name: ".into()), (0, "a-long-nam".into()), (0, "e".into()), (2, "b: c".into())]
        );
    }
}
