//! Checks the line ends of requests. The HTTP parser accepts a bare LF as the end of a line, which intermediaries
//! may interpret differently (<https://www.rfc-editor.org/rfc/rfc9112#section-2.2>), so it has to be detected before.
//! Heads are distinguished from bodies by their framing. Nothing is passed on behind what has no known framing, so that
//! no request is served unchecked.

/// Maximum size of a request head in bytes, as in other servers; a connection without a key uses no more memory than
/// this.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Maximum number of header fields in a head, which is also the limit of the parser.
const MAX_HEADERS: usize = 100;
/// Maximum size of a chunk's size line in bytes, extensions included.
const MAX_CHUNK_LINE_BYTES: usize = 16 << 10;

/// Tracks the requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    place: ParsePosition,
    /// Number of complete heads.
    heads: u64,
    /// Number, from 1, of the request whose head has a bare LF or no known end of its body; it is the last one.
    pub refused: Option<u64>,
    /// Why nothing more is passed on.
    pub stop: Option<Stop>,
}

/// Why the rest of a connection is not passed on to the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Behind the head of a refused request: the response closes the connection.
    RefusedHead,
    /// A head beyond the limit.
    LargeHead,
    /// Before the first malformed line of a chunked body.
    MalformedBody,
}

/// The part of the request stream to which the next byte belongs.
#[derive(Debug)]
enum ParsePosition {
    /// A head, with what was received so far.
    Head(Vec<u8>),
    /// A body, with the number of remaining bytes.
    Body(u64),
    /// The size line of a chunk, with what was received so far.
    ChunkSize(Vec<u8>),
    /// A chunk with its line end, with the number of remaining bytes.
    Chunk(u64),
    /// The trailers after the last chunk, with what was received of the current line.
    Trailers(Vec<u8>),
}

impl Default for ParsePosition {
    fn default() -> Self {
        Self::Head(Vec::new())
    }
}

impl Framing {
    /// Checks the next bytes. Returns how many of them may be passed on; if not all, `stop` is set.
    pub fn check(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while self.stop.is_none() && !rest.is_empty() {
            let taken = match &mut self.place {
                ParsePosition::Head(head) => {
                    let head = std::mem::take(head);
                    self.read_head(head, rest)
                }
                ParsePosition::Body(left) => {
                    let taken = consume(left, rest);
                    if *left == 0 {
                        self.place = ParsePosition::default();
                    }
                    taken
                }
                ParsePosition::Chunk(left) => {
                    let taken = consume(left, rest);
                    if *left == 0 {
                        self.place = ParsePosition::ChunkSize(Vec::new());
                    }
                    taken
                }
                ParsePosition::ChunkSize(line) | ParsePosition::Trailers(line) => {
                    let taken = through_line_end(rest);
                    line.extend_from_slice(&rest[..taken]);
                    if line.ends_with(b"\r\n") {
                        match self.place.behind_line() {
                            Some(place) => self.place = place,
                            None => self.stop = Some(Stop::MalformedBody),
                        }
                    } else if line.ends_with(b"\n") || line.len() > MAX_CHUNK_LINE_BYTES {
                        self.stop = Some(Stop::MalformedBody);
                    }
                    // The parser might accept what is refused here.
                    if self.stop.is_some() { 0 } else { taken }
                }
            };
            rest = &rest[taken..];
        }
        bytes.len() - rest.len()
    }

    /// Returns the number of the request whose body is not complete; 0 if there is none.
    pub fn unfinished(&self) -> u64 {
        if matches!(self.place, ParsePosition::Head(_)) { 0 } else { self.heads }
    }

    fn read_head(&mut self, mut head: Vec<u8>, bytes: &[u8]) -> usize {
        let taken = through_line_end(bytes);
        head.extend_from_slice(&bytes[..taken]);
        if head.len() > MAX_HEAD_BYTES {
            self.stop = Some(Stop::LargeHead);
            return 0;
        }
        if head.ends_with(b"\n") && !head.ends_with(b"\r\n") {
            self.refused.get_or_insert(self.heads + 1);
        }
        if matches!(&*head, b"\r\n" | b"\n") {
            // Empty lines before a request are skipped.
            head.clear();
        } else if head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n") {
            self.heads += 1;
            let place = framing_behind(&head).filter(|_| self.refused.is_none());
            if place.is_none() {
                self.refused = Some(self.heads);
                self.stop = Some(Stop::RefusedHead);
            }
            self.place = place.unwrap_or_default();
            return taken;
        }
        self.place = ParsePosition::Head(head);
        taken
    }
}

impl ParsePosition {
    /// Returns what follows a complete line of a chunked body; `None` if the line is malformed.
    fn behind_line(&self) -> Option<Self> {
        match self {
            Self::ChunkSize(line) => {
                let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                let size = std::str::from_utf8(&line[..digits]).ok()?;
                match u64::from_str_radix(size, 16).ok()? {
                    0 => Some(Self::Trailers(Vec::new())),
                    size => Some(Self::Chunk(size.saturating_add(2))),
                }
            }
            // An empty line ends them.
            Self::Trailers(line) if line == b"\r\n" => Some(Self::default()),
            Self::Trailers(_) => Some(Self::Trailers(Vec::new())),
            Self::Head(_) | Self::Body(_) | Self::Chunk(_) => None,
        }
    }
}

/// Consumes the received bytes of a part.
fn consume(left: &mut u64, bytes: &[u8]) -> usize {
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    *left -= taken as u64;
    taken
}

/// Returns the number of bytes up to and including the first line end; all of them if there is none.
fn through_line_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1)
}

/// Returns the framing of what follows a head; `None` if it is malformed.
fn framing_behind(head: &[u8]) -> Option<ParsePosition> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).ok().filter(httparse::Status::is_complete)?;
    let value = |name: &str| {
        request
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    };
    // `CONNECT` and `Upgrade` are not treated separately: the service never switches protocols.
    if value("transfer-encoding").is_some() {
        // The parser accepts no coding other than a final `chunked`.
        return Some(ParsePosition::ChunkSize(Vec::new()));
    }
    let Some(length) = value("content-length") else { return Some(ParsePosition::default()) };
    let length = std::str::from_utf8(length).ok().filter(|_| length.iter().all(u8::is_ascii_digit))?;
    match length.parse().ok()? {
        0 => Some(ParsePosition::default()),
        length => Some(ParsePosition::Body(length)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the refused request when the bytes arrive in pieces.
    fn refused(text: &str, chunk: usize) -> Option<u64> {
        let mut framing = Framing::default();
        text.as_bytes().chunks(chunk).find_map(|chunk| {
            framing.check(chunk);
            framing.refused
        })
    }

    const SOUND: [&str; 8] = [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "\r\nPOST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\na\n\nb\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\n\n\n\n\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\n\n\r\n0\r\nnote: b\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n00000000000000002\r\n\n\n\r\n00000000000000000\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ];

    #[test]
    fn a_bare_line_feed_in_a_head_is_found() {
        let heads = [
            "GET / HTTP/1.1\nhost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\n\n",
            "\nGET / HTTP/1.1\r\n\r\n",
        ];
        for text in heads {
            assert_eq!(refused(text, 7), Some(1), "{text:?}");
        }
    }

    #[test]
    fn endless_head_is_too_large() {
        let mut framing = Framing::default();
        let line = format!("x: {}\r\n", "y".repeat(1_000));
        assert_eq!(framing.check(b"GET / HTTP/1.1\r\n"), 16);
        let lines = (1..1_000).take_while(|_| framing.check(line.as_bytes()) > 0);
        assert_eq!(lines.count(), MAX_HEAD_BYTES / line.len());
        assert_eq!(framing.stop, Some(Stop::LargeHead));
    }

    proptest! {
        #[test]
        fn valid_requests_pass_and_the_next_is_checked(
            which in proptest::collection::vec(0..SOUND.len(), 0..6),
            chunk in 1_usize..50,
        ) {
            let text: String = which.iter().map(|at| SOUND[*at]).collect();
            prop_assert_eq!(refused(&text, chunk), None);
            let number = which.len() as u64 + 1;
            prop_assert_eq!(refused(&format!("{text}GET / HTTP/1.1\nhost: a\r\n\r\n"), chunk), Some(number));
        }

        #[test]
        fn any_bytes_are_handled(text in "[\r\n :0-9a-cGT/;]{0,200}", chunk in 1_usize..50) {
            prop_assert!(refused(&text, chunk).is_none_or(|number| number > 0));
        }
    }
}
