//! A minimal Rust lexer that separates code from comments and strings, with line numbers.

/// A word or a punctuation mark of code (`::` is one mark), with its line from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// One line of a comment, doc comments included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub text: String,
    pub line: usize,
}

/// Splits a source into tokens and comments. The contents of strings and characters are neither.
pub fn lex(source: &str) -> (Vec<Token>, Vec<Comment>) {
    let chars: Vec<char> = source.chars().collect();
    let mut lexer = Lexer { chars, at: 0, line: 1, tokens: Vec::new(), comments: Vec::new() };
    lexer.run();
    (lexer.tokens, lexer.comments)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn bump(&mut self) -> char {
        let c = self.peek(0);
        self.at += 1;
        self.line += usize::from(c == '\n');
        c
    }

    fn ended(&self) -> bool {
        self.at >= self.chars.len()
    }

    fn run(&mut self) {
        while !self.ended() {
            let c = self.peek(0);
            match c {
                '/' if self.peek(1) == '/' => self.line_comment(),
                '/' if self.peek(1) == '*' => self.block_comment(),
                '"' => self.string(),
                '\'' => self.quote(),
                c if c == '_' || c.is_alphabetic() => self.word(),
                c if c.is_whitespace() => {
                    self.bump();
                }
                ':' if self.peek(1) == ':' => {
                    self.push("::".into());
                    self.at += 2;
                }
                c => {
                    self.push(c.to_string());
                    self.bump();
                }
            }
        }
    }

    fn push(&mut self, text: String) {
        self.tokens.push(Token { text, line: self.line });
    }

    fn line_comment(&mut self) {
        let line = self.line;
        let mut text = String::new();
        while !self.ended() && self.peek(0) != '\n' {
            text.push(self.bump());
        }
        self.comments.push(Comment { text, line });
    }

    /// Block comments nest in Rust.
    fn block_comment(&mut self) {
        let mut depth = 0;
        let (mut text, mut line) = (String::new(), self.line);
        while !self.ended() {
            let pair = (self.peek(0), self.peek(1));
            if pair == ('/', '*') || pair == ('*', '/') {
                depth += if pair.0 == '/' { 1 } else { -1 };
                self.at += 2;
                if depth == 0 {
                    break;
                }
            } else if self.peek(0) == '\n' {
                self.comments.push(Comment { text: std::mem::take(&mut text), line });
                self.bump();
                line = self.line;
            } else {
                text.push(self.bump());
            }
        }
        self.comments.push(Comment { text, line });
    }

    fn string(&mut self) {
        self.bump();
        while !self.ended() {
            match self.bump() {
                '\\' => {
                    self.bump();
                }
                '"' => break,
                _ => {}
            }
        }
    }

    fn raw_string(&mut self) {
        let mut hashes = 0;
        while self.peek(0) == '#' {
            hashes += 1;
            self.bump();
        }
        self.bump();
        while !self.ended() {
            if self.bump() == '"' && (0..hashes).all(|n| self.peek(n) == '#') {
                self.at += hashes;
                break;
            }
        }
    }

    /// A character literal, or a lifetime (which is skipped).
    fn quote(&mut self) {
        self.bump();
        if self.peek(0) == '\\' {
            self.bump();
            self.bump();
            while !self.ended() && self.bump() != '\'' {}
        } else if self.peek(1) == '\'' {
            self.bump();
            self.bump();
        } else {
            while self.peek(0) == '_' || self.peek(0).is_alphanumeric() {
                self.bump();
            }
        }
    }

    fn word(&mut self) {
        let mut text = String::new();
        while self.peek(0) == '_' || self.peek(0).is_alphanumeric() {
            text.push(self.peek(0));
            self.at += 1;
        }
        let raw = matches!(text.as_str(), "r" | "br" | "cr");
        let opens_raw = {
            let hashes = self.chars[self.at..].iter().take_while(|c| **c == '#').count();
            self.peek(hashes) == '"'
        };
        if raw && opens_raw {
            self.raw_string();
        } else if matches!(text.as_str(), "b" | "c") && self.peek(0) == '"' {
            self.string();
        } else if text == "b" && self.peek(0) == '\'' {
            self.quote();
        } else if text == "r" && self.peek(0) == '#' {
            self.at += 1; // a raw identifier: the word behind it counts
        } else {
            self.push(text);
        }
    }
}
