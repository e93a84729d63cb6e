//! Checks the line ends of request heads. The HTTP parser accepts a bare LF as the end of a line, which intermediaries
//! may interpret differently (<https://www.rfc-editor.org/rfc/rfc9112#section-2.2>), so it has to be detected before.
//! Heads are distinguished from bodies by their framing, which `httparse` reads.

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
    /// Whether the current head exceeds the limit.
    pub head_is_too_large: bool,
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
    /// The trailers after the last chunk, with the number of bytes received of the current line.
    Trailers(usize),
    /// Unknown: the rest is left to the parser.
    Opaque,
}

impl Default for ParsePosition {
    fn default() -> Self {
        Self::Head(Vec::new())
    }
}

impl Framing {
    /// Checks the next bytes. Returns the number, from 1, of the request whose head has a bare LF; nothing after that
    /// is checked.
    pub fn check(&mut self, mut bytes: &[u8]) -> Option<u64> {
        while !bytes.is_empty() {
            let taken = match &mut self.place {
                ParsePosition::Opaque => return None,
                ParsePosition::Head(head) => {
                    let taken = through_line_end(bytes);
                    head.extend_from_slice(&bytes[..taken]);
                    if head.ends_with(b"\n") && !head.ends_with(b"\r\n") {
                        self.place = ParsePosition::Opaque;
                        return Some(self.heads + 1);
                    }
                    if head == b"\r\n" {
                        // Empty lines before a request are skipped.
                        head.clear();
                    } else if head.ends_with(b"\r\n\r\n") {
                        self.heads += 1;
                        self.place = framing_behind(head);
                    } else if head.len() > MAX_HEAD_BYTES {
                        self.head_is_too_large = true;
                        self.place = ParsePosition::Opaque;
                    }
                    taken
                }
                ParsePosition::Body(left) => {
                    let taken = take(left, bytes);
                    if *left == 0 {
                        self.place = ParsePosition::default();
                    }
                    taken
                }
                ParsePosition::Chunk(left) => {
                    let taken = take(left, bytes);
                    if *left == 0 {
                        self.place = ParsePosition::ChunkSize(Vec::new());
                    }
                    taken
                }
                ParsePosition::ChunkSize(line) => {
                    let taken = through_line_end(bytes);
                    line.extend_from_slice(&bytes[..taken]);
                    if line.ends_with(b"\n") {
                        // The parser of the server accepts any number of leading zeros.
                        let is_leading = |two: &&[u8]| two[0] == b'0' && two[1].is_ascii_hexdigit();
                        let digits = &line[line.windows(2).take_while(is_leading).count()..];
                        self.place = match httparse::parse_chunk_size(digits) {
                            Ok(httparse::Status::Complete((_, 0))) => ParsePosition::Trailers(0),
                            Ok(httparse::Status::Complete((_, size))) => {
                                ParsePosition::Chunk(size.saturating_add(2))
                            }
                            _ => ParsePosition::Opaque,
                        };
                    } else if line.len() > MAX_CHUNK_LINE_BYTES {
                        self.place = ParsePosition::Opaque;
                    }
                    taken
                }
                ParsePosition::Trailers(line) => {
                    let taken = through_line_end(bytes);
                    *line += taken;
                    if bytes[..taken].ends_with(b"\n") {
                        // An empty line ends them.
                        self.place =
                            if *line <= 2 { ParsePosition::default() } else { ParsePosition::Trailers(0) };
                    }
                    taken
                }
            };
            bytes = &bytes[taken..];
        }
        None
    }
}

/// Consumes the received bytes of a part.
fn take(left: &mut u64, bytes: &[u8]) -> usize {
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    *left -= taken as u64;
    taken
}

/// Returns the number of bytes up to and including the first line end; all of them if there is none.
fn through_line_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1)
}

/// Returns the framing of what follows a head.
fn framing_behind(head: &[u8]) -> ParsePosition {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
        return ParsePosition::Opaque;
    }
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
        ParsePosition::ChunkSize(Vec::new())
    } else if let Some(length) = value("content-length") {
        match std::str::from_utf8(length).ok().and_then(|length| length.trim().parse().ok()) {
            Some(0) => ParsePosition::default(),
            Some(length) => ParsePosition::Body(length),
            None => ParsePosition::Opaque,
        }
    } else {
        ParsePosition::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the request with a bare LF in its head when the bytes arrive in pieces.
    fn refused(text: &str, chunk: usize) -> Option<u64> {
        let mut framing = Framing::default();
        text.as_bytes().chunks(chunk).find_map(|chunk| framing.check(chunk))
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
        assert_eq!(framing.check(b"GET / HTTP/1.1\r\n"), None);
        let lines =
            (1..1_000).take_while(|_| framing.check(line.as_bytes()).is_none() && !framing.head_is_too_large);
        assert_eq!(lines.count(), MAX_HEAD_BYTES / line.len());
        assert!(matches!(framing.place, ParsePosition::Opaque));
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
