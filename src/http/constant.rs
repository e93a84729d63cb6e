//! Documents that are the same for every caller and need no key: compressed once, so that requests for them cost little.

use std::io::Write as _;
use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::app::text;

/// A document with its media type, and its compressed form once it was requested.
pub(super) struct ConstantDocument {
    kind: &'static str,
    text: fn() -> &'static str,
    compressed: OnceLock<Bytes>,
}

impl ConstantDocument {
    pub const fn new(kind: &'static str, text: fn() -> &'static str) -> Self {
        Self { kind, text, compressed: OnceLock::new() }
    }

    /// Returns the response, compressed if the client accepts it.
    pub fn answer(&self, request_headers: &HeaderMap) -> Response {
        if !accepts_gzip(request_headers) {
            return text(self.kind, (self.text)());
        }
        let compressed = self.compressed.get_or_init(|| gzip((self.text)()));
        let mut response = text(self.kind, compressed.clone());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        response
    }
}

fn gzip(text: &str) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    written.unwrap_or_default().into()
}

/// Returns whether `Accept-Encoding` names gzip, or `x-gzip`, which is the same, with a weight above 0 (RFC 9110, sections
/// 8.4.1.3 and 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|name| ["gzip", "x-gzip"].iter().any(|gzip| name.eq_ignore_ascii_case(gzip)));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        is_gzip && weight.is_none_or(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use axum::body::to_bytes;

    use super::*;

    fn request(accepted: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(accepted) = accepted {
            headers.insert(header::ACCEPT_ENCODING, accepted.parse().unwrap());
        }
        headers
    }

    #[tokio::test]
    async fn document_is_compressed_once() {
        let document = ConstantDocument::new("text/plain", || "text\n");
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let response = document.answer(&request(Some("br, gzip;q=0.8")));
            assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
            bodies.push(to_bytes(response.into_body(), usize::MAX).await.unwrap());
        }
        let [first, second] = bodies.as_slice() else { panic!("{bodies:?}") };
        assert_eq!(first.as_ptr(), second.as_ptr());
        let mut text = String::new();
        flate2::read::GzDecoder::new(first.as_ref()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "text\n");
    }

    #[test]
    fn the_other_name_of_gzip_is_accepted() {
        assert!(accepts_gzip(&request(Some("x-gzip"))));
        assert!(!accepts_gzip(&request(Some("x-gzip;q=0"))));
    }

    #[test]
    fn document_is_sent_uncompressed_to_others() {
        let document = ConstantDocument::new("text/plain", || "text\n");
        for accepted in [None, Some(""), Some("br"), Some("gzip;q=0"), Some("gzip; q=0.0, identity")] {
            let response = document.answer(&request(accepted));
            assert!(!response.headers().contains_key(header::CONTENT_ENCODING), "{accepted:?}");
        }
    }
}
