//! Command lines that refer to the same skills and runs as the workbench.

use skills_config::Invocation;

/// How the workbench was started.
#[derive(Debug, Clone, Default)]
pub struct CommandLines {
    invocation: Invocation,
    /// Whether no other process can access the runs and sessions.
    is_private: bool,
}

impl CommandLines {
    pub fn new(invocation: Invocation, is_private: bool) -> Self {
        Self { invocation, is_private }
    }

    /// Returns whether the skills are the shipped ones, which cannot be changed.
    pub fn is_demo(&self) -> bool {
        self.invocation.is_demo()
    }

    /// Returns a command line that has the same effect elsewhere; `None` if it refers to a store that no other process
    /// can access.
    pub fn completed(&self, line: &str) -> Option<String> {
        let is_stored = ["skills runs ", "skills session "].iter().any(|begin| line.starts_with(begin));
        (!(is_stored && self.is_private)).then(|| self.invocation.completed(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_repeat_the_options_unless_the_store_is_private() {
        let invocation = Invocation::with(vec!["--demo".to_owned()]);
        let commands = |is_private| CommandLines::new(invocation.clone(), is_private);
        let shown = |line: &str, is_private| commands(is_private).completed(line);
        assert_eq!(shown("skills runs list", false).as_deref(), Some("skills --demo runs list"));
        assert_eq!(shown("skills runs list", true), None);
        assert_eq!(shown("skills budget", true).as_deref(), Some("skills --demo budget"));
    }
}
