//! What the options of an execution may be.

use super::{Code, Error, ExecutionOptions};

/// Longest idempotency key and trace id, in bytes.
const LONGEST: usize = 255;

impl ExecutionOptions {
    /// Whether every member is what it may be.
    ///
    /// # Errors
    /// `invalid_request` naming the member.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (what, text) in [("idempotency key", &self.idempotency_key), ("trace id", &self.trace_id)] {
            // It goes into headers and file names of others: short and visible.
            let fits = |text: &String| {
                (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
            };
            if let Some(text) = text.as_ref().filter(|text| !fits(text)) {
                let message =
                    format!("the {what} is {text:?}; allowed: 1 to {LONGEST} visible ASCII characters");
                return Err(Error::new(Code::InvalidRequest, message));
            }
        }
        if self.expires_in == Some(0) {
            return Err(Error::new(Code::InvalidRequest, "expires_in is 0; allowed: seconds, 1 at least"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_short_and_visible_and_a_wait_has_a_length() {
        let with =
            |key: &str| ExecutionOptions { idempotency_key: Some(key.to_owned()), ..Default::default() };
        assert!(with("order-7").check().is_ok());
        for wrong in ["", "a b", "a\n", &"x".repeat(256), "ü"] {
            assert!(with(wrong).check().is_err(), "{wrong:?}");
        }
        let never = ExecutionOptions { expires_in: Some(0), ..Default::default() };
        assert!(never.check().unwrap_err().message.contains("expires_in"));
    }
}
