//! Parser of server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>) from a byte stream.

/// Maximum size of an event in bytes; a longer one is dropped at the line that exceeds the limit.
const MAX_EVENT_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// Event type; `message` if none is given.
    pub kind: String,
    pub data: String,
}

/// State of an incomplete event.
#[derive(Debug, Default)]
pub struct Stream {
    rest: Vec<u8>,
    kind: String,
    data: Option<String>,
}

impl Stream {
    /// Adds a chunk; returns the events that it completes.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<StreamEvent> {
        self.rest.extend_from_slice(chunk);
        let mut events = Vec::new();
        let mut at = 0;
        // A carriage return at the end may be the first half of a line ending.
        while let Some((line, next)) = line(&self.rest, at) {
            let text = String::from_utf8_lossy(line).into_owned();
            at = next;
            events.extend(self.line(&text));
        }
        self.rest.drain(..at);
        if self.rest.len() > MAX_EVENT_BYTES {
            self.rest.clear();
        }
        events
    }

    fn line(&mut self, line: &str) -> Option<StreamEvent> {
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            let kind = if kind.is_empty() { "message".to_owned() } else { kind };
            return self.data.take().map(|data| StreamEvent { kind, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.kind),
            "data" => match &mut self.data {
                Some(data) if data.len() + value.len() < MAX_EVENT_BYTES => {
                    data.push('\n');
                    data.push_str(value);
                }
                Some(_) => {}
                None => self.data = Some(value.to_owned()),
            },
            // Comments keep the connection alive; `id` and `retry` are not needed, because missed events are requested.
            _ => {}
        }
        None
    }
}

/// Returns the line that begins at a position, and the position of the next one.
fn line(bytes: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(from..)?;
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    let next = match (rest[end], rest.get(end + 1)) {
        (b'\r', Some(b'\n')) => end + 2,
        (b'\r', None) => return None,
        _ => end + 1,
    };
    Some((&rest[..end], from + next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_event(kind: &str, data: &str) -> StreamEvent {
        StreamEvent { kind: kind.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_are_complete_at_any_chunk_boundary() {
        let text = ": hello\n\nevent: catalogue\nid: 7\ndata: {\"a\":\r\ndata:  1}\r\n\r\ndata: ä\n\nevent: none\n\n";
        let expected = [parse_event("catalogue", "{\"a\":\n 1}"), parse_event("message", "ä")];
        assert_eq!(Stream::default().push(text.as_bytes()), expected);
        for size in 1..9 {
            let mut stream = Stream::default();
            let events: Vec<StreamEvent> =
                text.as_bytes().chunks(size).flat_map(|chunk| stream.push(chunk)).collect();
            assert_eq!(events, expected, "pieces of {size}");
        }
    }

    #[test]
    fn incomplete_event_is_buffered() {
        let mut stream = Stream::default();
        assert!(stream.push(b"data: 1\n").is_empty());
        assert_eq!(stream.push(b"\n"), [parse_event("message", "1")]);
        assert!(stream.push(b"\n\n\n").is_empty());
    }
}
