//! Detects lines on standard input that are too long for the protocol library, which drops them without a response, and
//! the id of the request on such a line.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::model::RequestId;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of stored bytes of a member's name or value.
const MAX_TOKEN_BYTES: usize = 256;

/// Maximum number of lines that were found and are not answered yet.
const MAX_PENDING: usize = 64;

/// An input that is passed through unchanged.
pub struct InspectedReader<R> {
    inner: R,
    max_line_bytes: usize,
    line: Line,
    found: Sender<Option<RequestId>>,
}

impl<R> InspectedReader<R> {
    /// Wraps an input. The receiver gets an item for each line longer than `max_line_bytes`, with the id of its request.
    pub fn new(inner: R, max_line_bytes: usize) -> (Self, Receiver<Option<RequestId>>) {
        let (found, oversized) = channel(MAX_PENDING);
        (Self { inner, max_line_bytes, line: Line::default(), found }, oversized)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for InspectedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let this = &mut *self;
        let read = ready!(Pin::new(&mut this.inner).poll_read(cx, buffer));
        for &byte in buffer.filled().get(before..).unwrap_or_default() {
            this.line.push(byte);
            if byte == b'\n' {
                let line = std::mem::take(&mut this.line);
                if line.bytes > this.max_line_bytes {
                    // The receiver is gone when the connection ends.
                    if let Err(TrySendError::Full(_)) = this.found.try_send(line.request()) {
                        tracing::warn!("too many oversized messages; one was dropped without a response");
                    }
                }
            }
        }
        Poll::Ready(read)
    }
}

/// The state of the current line: its length, and the members `id` and `method` of its object.
#[derive(Default)]
struct Line {
    bytes: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The last name or value of the object itself, at most [`MAX_TOKEN_BYTES`].
    token: Vec<u8>,
    name: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
}

impl Line {
    fn push(&mut self, byte: u8) {
        self.bytes += 1;
        let is_member = self.depth == 1;
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    return;
                }
                b'}' | b']' => {
                    if is_member {
                        self.end_member();
                    }
                    self.depth = self.depth.saturating_sub(1);
                    return;
                }
                b',' if is_member => return self.end_member(),
                b':' if is_member => {
                    self.name = std::mem::take(&mut self.token);
                    return;
                }
                _ if byte.is_ascii_whitespace() => return,
                _ => {}
            }
        }
        if is_member && self.token.len() < MAX_TOKEN_BYTES {
            self.token.push(byte);
        }
    }

    fn end_member(&mut self) {
        let value = std::mem::take(&mut self.token);
        match std::mem::take(&mut self.name).as_slice() {
            b"\"id\"" => self.id = value,
            b"\"method\"" => self.has_method = true,
            _ => {}
        }
    }

    /// The id of the request; none of a notification, and of an answer, whose id is one of this side.
    fn request(&self) -> Option<RequestId> {
        if self.has_method { serde_json::from_slice(&self.id).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Option<RequestId> {
        let mut line = Line::default();
        text.bytes().for_each(|byte| line.push(byte));
        line.request()
    }

    #[test]
    fn the_id_of_a_request_is_found_anywhere() {
        let seven = Some(RequestId::Number(7));
        assert_eq!(request(r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"id":8}}"#), seven);
        let last = r#"{ "method" : "x", "params": {"id": 8, "a": ["}", {"id":9}], "b\"": "\\"}, "id" : 7 }"#;
        assert_eq!(request(last), seven);
        let text = Some(RequestId::String("a\"b".into()));
        assert_eq!(request(r#"{"id":"a\"b","method":"x"}"#), text);
    }

    #[test]
    fn other_messages_have_no_id() {
        for other in [
            r#"{"id":7,"result":{"method":"x"}}"#,
            r#"{"method":"x"}"#,
            r#"{"id":null,"method":"x"}"#,
            r#"[{"id":7,"method":"x"}]"#,
            r#""id":7,"method":"x""#,
            "}}}",
            "",
        ] {
            assert_eq!(request(other), None, "{other}");
        }
        let long = "1".repeat(MAX_TOKEN_BYTES + 1);
        assert_eq!(request(&format!(r#"{{"id":{long},"method":"x"}}"#)), None);
    }
}
