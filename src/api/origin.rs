//! An origin whose pages may call the service.

use crate::{Code, Error};

/// An origin: scheme, host and port, in the browser's notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// Parses `https://docs.example` or `http://localhost:3000`.
    ///
    /// # Errors
    /// Returns `invalid_request` for `*`, for `null`, and for anything other than an origin.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            let message = format!(
                "{text:?} is not an origin: {why}; expected scheme, host and port, e.g. \
                 https://docs.example or http://localhost:3000"
            );
            Error::new(Code::InvalidRequest, message)
        };
        if text == "*" || text == "null" {
            return Err(wrong("it matches every page"));
        }
        let (scheme, host) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        if !matches!(scheme, "http" | "https") {
            return Err(wrong("its scheme is neither http nor https"));
        }
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        let usual = if scheme == "http" { "80" } else { "443" };
        match port {
            Some(port) if port == usual => return Err(wrong("browsers omit the default port")),
            Some(port) if port.parse::<u16>().is_err() || port.starts_with(['0', '+']) => {
                return Err(wrong("its port is not a number from 1 to 65535"));
            }
            _ => {}
        }
        let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || "-._[]:".contains(sign);
        if name.is_empty() || !name.chars().all(fits) {
            return Err(wrong("its host is not lowercase, or is followed by something"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns it in the browser's notation.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_origins_that_browsers_send_are_valid() {
        for fits in
            ["https://docs.example", "http://localhost:3000", "http://127.0.0.1:8081", "http://[::1]:3000"]
        {
            assert_eq!(Origin::parse(fits).unwrap().as_str(), fits);
        }
        for wrong in [
            "*",
            "null",
            "docs.example",
            "https://*.example",
            "https://docs.example/",
            "https://docs.example:443",
            "https://Docs.example",
            "https://a@docs.example",
            "ftp://docs.example",
            "http://localhost:port",
            "https://",
            "https://a b",
        ] {
            assert!(Origin::parse(wrong).is_err(), "{wrong}");
        }
    }
}
