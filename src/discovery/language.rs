//! Language detection by script and function words.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

use super::phrases::Lexicon;
use super::tokenize::{Words, is_unspaced};
use skills_skill::slice;

/// A language other than English: one of the phrases file, or a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum Language {
    /// Detected by its function words: index into [`Lexicon::languages`].
    Listed(u8),
    /// Han characters, some of which only Chinese writes.
    Chinese,
    /// A text with Kana, or with Han characters that only Japanese writes.
    Japanese,
    /// A text with Hangul.
    Korean,
    /// A script other than Latin.
    OtherScript,
    /// One of several languages with the same number of function words.
    Undetermined,
    /// Han characters that both Chinese and Japanese write.
    Han,
}

/// Frequent characters that Chinese writes and Japanese does not, or only with Kana around them.
const CHINESE_CHARACTERS: &str = "从个时测试查为发应户运实过证标对动现构关进规计单务码检类产验复则项确每设问处库间结审调级优编输变题态记评选货\
    误错开录值图费线认请仅预资导环组您报划适这视统风业话创别响场层执议约获键险义换阶转电异协择败权读简语续么\
    质启护销询终增见经频说该识们节队页长归显强联购连门备边词负储块缓监围员离达访译订张车买卖讲谢谁给帮吗呢吧\
    份你啊网载带怎哪它她迁我";

/// Frequent characters that Japanese writes and Chinese does not.
const JAPANESE_CHARACTERS: &str = "実検関価処対読発済効値続込録択応単頼拠両拡経従駆観覚図専満仮広売払転歴様圧廃増粋戻軽隠譲険挿毎気帰楽黙産\
    剰緑総営絵賛聴剤労勧栄繊薬訳説権団囲働査歩変枠収塩姉辺遅釈鉄銭鋭顔髪齢験駅歓焼";

impl Language {
    /// Returns whether a text in this language may be one in another: Han characters alone are Chinese or Japanese.
    pub fn may_be(self, other: Self) -> bool {
        self == other || (self == Self::Han && matches!(other, Self::Chinese | Self::Japanese))
    }

    /// Returns whether a word is one of its function words.
    pub fn has_function_word(self, word: &str, lexicon: &Lexicon) -> bool {
        let languages = lexicon.function_words.get(word).copied().unwrap_or_default();
        match self {
            Self::Listed(at) => languages & (1 << at) != 0,
            Self::Undetermined => languages != 0,
            _ => false,
        }
    }

    /// Returns its code and English name.
    pub fn name(self, lexicon: &Lexicon) -> (String, String) {
        let of = |code: &str, name: &str| (code.to_owned(), name.to_owned());
        match self {
            Self::Listed(at) => lexicon
                .languages
                .get(usize::from(at))
                .cloned()
                .unwrap_or_else(|| of("und", "another language")),
            Self::Chinese => of("zh", "Chinese"),
            Self::Japanese => of("ja", "Japanese"),
            Self::Korean => of("ko", "Korean"),
            Self::Han => of("und", "Chinese or Japanese"),
            Self::OtherScript => of("und", "another script"),
            Self::Undetermined => of("und", "another language"),
        }
    }
}

/// Words that are written in lower case inside names: `Rio de Janeiro`.
const NAME_PARTICLES: [&str; 26] = [
    "al", "and", "d", "da", "das", "de", "del", "della", "der", "des", "di", "do", "dos", "du", "e", "el",
    "en", "et", "l", "la", "las", "le", "les", "los", "und", "y",
];

/// Articles with which the name of a work or of a company may start: `La La Land`.
const ARTICLES: [&str; 13] =
    ["das", "de", "der", "die", "el", "gli", "het", "il", "la", "las", "le", "les", "los"];

struct TextWord<'a> {
    written: &'a str,
    lower: String,
    /// Whether it is a part of a name of several words.
    in_name: bool,
}

impl TextWord<'_> {
    /// Returns whether it is written in capitals, as abbreviations are (`MIT`, `ER`).
    fn is_in_capitals(&self) -> bool {
        self.written.chars().nth(1).is_some() && self.written.chars().all(char::is_uppercase)
    }
}

/// Finds web addresses, e-mail addresses, and names with dots inside (`socket.io`): their parts are not words of any
/// language.
pub(crate) fn addresses(text: &str) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_ascii() && !c.is_ascii_whitespace();
    let has_inner_dot = |word: &str| {
        word.as_bytes().windows(3).any(|three| {
            three[1] == b'.' && three[0].is_ascii_alphanumeric() && three[2].is_ascii_alphanumeric()
        })
    };
    let mut out = Vec::new();
    let mut end = 0;
    while let Some(offset) = slice(text, end..text.len()).find(is_part) {
        let start = end + offset;
        let rest = slice(text, start..text.len());
        end = start + rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let word = slice(text, start..end).trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if has_inner_dot(word) || word.contains("://") {
            out.push(start..start + word.len());
        }
    }
    out
}

/// Replaces the addresses in a text by spaces.
fn without_addresses(text: &str) -> Cow<'_, str> {
    let found = addresses(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for address in found {
        out.push_str(slice(text, at..address.start));
        out.push(' ');
        at = address.end;
    }
    out.push_str(slice(text, at..text.len()));
    Cow::Owned(out)
}

/// Splits a text into words, and finds the names: at least two capitalized words in a row, with particles between
/// them. The capital of a sentence's first word is none of a name if the word is a function word of another language
/// (`Mein Kubernetes Pod`), except an article.
fn words_and_names<'a>(text: &'a str, lexicon: &Lexicon) -> Vec<TextWord<'a>> {
    let split = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut out: Vec<TextWord<'_>> =
        split.map(|written| TextWord { written, lower: written.to_lowercase(), in_name: false }).collect();
    let is_capitalized = |word: &TextWord<'_>| word.written.starts_with(char::is_uppercase);
    let opens_sentence = |word: &TextWord<'_>| {
        lexicon.function_words.contains_key(&word.lower) && !ARTICLES.contains(&word.lower.as_str())
    };
    let mut at = usize::from(out.first().is_some_and(opens_sentence));
    while at < out.len() {
        let mut last = at;
        let mut next = at + 1;
        while is_capitalized(&out[at]) && next < out.len() {
            if is_capitalized(&out[next]) {
                last = next;
            } else if !NAME_PARTICLES.contains(&out[next].lower.as_str()) {
                break;
            }
            next += 1;
        }
        if last > at {
            out[at..=last].iter_mut().for_each(|word| word.in_name = true);
        }
        at = last + 1;
    }
    out
}

/// Language evidence in a text.
#[derive(Debug, Default)]
struct Evidence {
    latin: usize,
    kana: usize,
    hangul: usize,
    han: usize,
    /// Whether some characters are only written in Chinese, and in Japanese.
    chinese: bool,
    japanese: bool,
    /// Characters of other scripts without spaces.
    unspaced: usize,
    other: usize,
    /// Number of English stop words.
    english: usize,
    /// Number of those of one letter, which other languages have too (`Mon chat a des puces`).
    english_letters: usize,
    /// By language: number of its function words, and of English stop words that it does not have.
    listed: Vec<(usize, usize)>,
    /// By language: whether one of its function words is neither a single letter nor an English word.
    certain: Vec<bool>,
    /// By language: number of its distinguishing letters.
    letters: Vec<usize>,
}

impl Evidence {
    /// Collects the evidence; the words of names are none if `without_names`.
    fn new(text: &str, without_names: bool, words: &Words, lexicon: &Lexicon) -> Self {
        let shouts = !text.contains(char::is_lowercase);
        let letters =
            |of: &String| text.chars().flat_map(char::to_lowercase).filter(|c| of.contains(*c)).count();
        let mut out = Self {
            listed: vec![(0, 0); lexicon.languages.len()],
            certain: vec![false; lexicon.languages.len()],
            letters: lexicon.letters.iter().map(letters).collect(),
            chinese: text.contains(|c| CHINESE_CHARACTERS.contains(c)),
            japanese: text.contains(|c| JAPANESE_CHARACTERS.contains(c)),
            ..Self::default()
        };
        for c in text.chars().filter(|c| c.is_alphabetic()) {
            match u32::from(c) {
                0x3040..=0x30FF | 0x31F0..=0x31FF | 0xFF66..=0xFF9F => out.kana += 1,
                0x1100..=0x11FF | 0xAC00..=0xD7AF => out.hangul += 1,
                0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF => out.han += 1,
                _ if is_unspaced(c) => out.unspaced += 1,
                // The last two: full-width letters.
                0..=0x024F | 0x1E00..=0x1EFF | 0xFF21..=0xFF3A | 0xFF41..=0xFF5A => out.latin += 1,
                _ => out.other += 1,
            }
        }
        for word in words_and_names(text, lexicon) {
            if (word.in_name && without_names) || (word.is_in_capitals() && !shouts) {
                continue;
            }
            let word = word.lower;
            let stop = words.is_stop(&word);
            let of = lexicon.function_words.get(&word).copied().unwrap_or_default();
            let is_certain = word.chars().nth(1).is_some() && !lexicon.english_words.contains(&word);
            out.english += usize::from(stop);
            out.english_letters += usize::from(stop && word.chars().nth(1).is_none());
            for (at, (foreign, english)) in out.listed.iter_mut().enumerate() {
                let has = of & (1 << at) != 0;
                *foreign += usize::from(has && !stop);
                *english += usize::from(stop && !has);
                out.certain[at] |= has && !stop && is_certain;
            }
        }
        out
    }

    fn script(&self) -> Option<Language> {
        /// Weight of a character of a script without spaces, in letters.
        const WORTH: usize = 3;
        let unspaced = self.kana + self.hangul + self.han + self.unspaced;
        // Without English words, half as much is enough.
        let needed = if self.english == 0 { self.latin / 2 } else { self.latin };
        if unspaced * WORTH > needed && unspaced > 1 {
            return Some(match (self.kana, self.hangul) {
                _ if 2 * self.unspaced > unspaced => Language::OtherScript,
                (0, 0) => match (self.chinese, self.japanese) {
                    (true, false) => Language::Chinese,
                    (false, true) => Language::Japanese,
                    _ => Language::Han,
                },
                (kana, hangul) if kana >= hangul => Language::Japanese,
                _ => Language::Korean,
            });
        }
        (self.other > self.latin).then_some(Language::OtherScript)
    }

    /// Returns the language with the most function words, if they outnumber the English ones. Ties are resolved by
    /// distinguishing letters; without them, the language is undetermined.
    fn listed(&self) -> Option<(Language, usize, usize)> {
        let (at, (foreign, english)) =
            self.listed.iter().enumerate().max_by_key(|(at, (foreign, english))| {
                (*foreign, self.letters[*at], Reverse(*english), Reverse(*at))
            })?;
        let key = (*foreign, self.letters[at]);
        let ties = self
            .listed
            .iter()
            .zip(&self.letters)
            .filter(|((foreign, _), letters)| (*foreign, **letters) == key);
        let language = if ties.count() > 1 { Language::Undetermined } else { Language::Listed(at as u8) };
        (foreign > english && self.certain[at]).then_some((language, *foreign, *english))
    }
}

/// Detects the language of a description; returns `None` for English and for an undetermined language. Han characters
/// alone are Chinese, as in most descriptions without Kana.
pub(crate) fn of_description(text: &str, words: &Words, lexicon: &Lexicon) -> Option<Language> {
    let evidence = Evidence::new(text, false, words, lexicon);
    let listed = || evidence.listed().filter(|(_, hits, _)| *hits >= 2).map(|(language, ..)| language);
    let script = evidence.script().map(|language| match language {
        Language::Han => Language::Chinese,
        other => other,
    });
    script.or_else(listed).filter(|language| *language != Language::Undetermined)
}

/// Detects the language of a request with `unknown` unknown content words; returns `None` for English and if there is
/// too little evidence. The function words of names are not evidence next to English words (`slides about Rio de
/// Janeiro`); `is_known` returns whether the skills or the embedding have a word.
pub(crate) fn of_request(
    text: &str,
    unknown: usize,
    is_known: impl Fn(&str) -> bool,
    words: &Words,
    lexicon: &Lexicon,
) -> Option<Language> {
    let text = &*without_addresses(text);
    // A word of two letters that the skills have may be half of an abbreviation (`A/B`).
    let is_known = |word: &TextWord<'_>| {
        word.written == word.lower && word.lower.chars().nth(2).is_some() && is_known(&word.lower)
    };
    let is_english = |word: &TextWord<'_>| {
        let is_foreign = lexicon.function_words.contains_key(&word.lower);
        !word.in_name
            && !is_foreign
            && word.written.is_ascii()
            && (words.is_stop(&word.lower) || is_known(word))
    };
    let without_names = words_and_names(text, lexicon).iter().any(is_english);
    let evidence = Evidence::new(text, without_names, words, lexicon);
    // Next to an English word, a few function words may be those of a name in lower case.
    let has_content = words_and_names(text, lexicon).iter().any(|word| {
        is_known(word) && !words.is_stop(&word.lower) && !lexicon.function_words.contains_key(&word.lower)
    });
    let enough = |(_, hits, english): &(Language, usize, usize)| {
        let needed = 2 * english.saturating_sub(evidence.english_letters) + usize::from(has_content);
        (*hits >= 2 && *hits >= needed) || (*english == 0 && unknown >= 1)
    };
    evidence.script().or_else(|| evidence.listed().filter(enough).map(|(language, ..)| language))
}

#[cfg(test)]
mod tests {
    use super::super::weights::Weights;
    use super::*;

    #[test]
    fn languages_are_detected_by_script_and_function_words() {
        let weights = Weights::shipped().unwrap();
        let words = Words::new(weights.stop_words.clone());
        let lexicon = Lexicon::new(&weights.phrases, &words);
        let code = |text: &str| {
            of_request(text, 1, |_| false, &words, &lexicon).map(|language| language.name(&lexicon).0)
        };
        for (text, expected) in [
            ("schreibe mir einen Bericht über das Quartal", "de"),
            ("optimizar las consultas lentas de postgres", "es"),
            ("rédige un courriel pour mes collègues", "fr"),
            ("从PDF文件中提取表格", "zh"),
            ("このPDFの表を抽出して", "ja"),
            ("文書翻訳", "ja"),
            ("競合他社分析", "und"),
            ("整理Ｅｘｃｅｌ", "und"),
            ("напиши отчёт", "und"),
            ("deploy auf AWS lambda automatisieren", "de"),
            ("configura CI/CD con github actions", "und"),
            ("Mein Kubernetes Pod stürzt ab", "de"),
            ("écris les notes de version", "und"),
            ("เขียนการทดสอบ", "und"),
            ("Reservar mesa para dos", "und"),
            ("was ist ein docker container", "de"),
        ] {
            assert_eq!(code(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "Ｅｘｃｅｌ ｔａｂｌｅｓ",
            "write a cover letter to Müller und Söhne",
            "summarize the 会議 notes of our team",
            "plan a trip from São Paulo to Rio de Janeiro",
            "what is my balance",
            "kuberntes pod crashlooping",
            "unit tests for the parser that José wrote",
            "e.g. i.e. etc.",
            "I am in die hard mode",
            "vis-à-vis comparison",
            "compare Der Spiegel with Die Zeit",
            "invoice for Hotel de la Paix",
            "AI video editnig",
            "ai video editnig",
            "socket.io chat server zorblat",
            "download video https://www.youtube.com/watch?v=dQw4w9WgXcQ",
            "write to zorblat@zorbit.com.",
            "MIT license zorbit",
            "ER diagram zorbit schema",
        ] {
            assert_eq!(code(text), None, "{text}");
        }
        let with_known = |text: &str| {
            let is_known = |word: &str| {
                ["review", "summary", "translate", "dashboard", "slides", "email"].contains(&word)
            };
            of_request(text, 1, is_known, &words, &lexicon).map(|language| language.name(&lexicon).0)
        };
        for text in [
            "review der spiegel with die zeit",
            "La La Land review",
            "Les Misérables summary",
            "translate Das Kapital summary",
            "create slides about Don Quijote de la Mancha",
            "email about Para Los Niños",
        ] {
            assert_eq!(with_known(text), None, "{text}");
        }
        assert_eq!(with_known("Schreibe einen Bericht über das Dashboard").as_deref(), Some("de"));
        let with_ab = |word: &str| word == "ab";
        let crash = of_request("Mein Kubernetes Pod stürzt ständig ab", 2, with_ab, &words, &lexicon);
        assert_eq!(crash.map(|language| language.name(&lexicon).0).as_deref(), Some("de"));
        assert_eq!(with_known("Mein Kubernetes Pod stürzt ab").as_deref(), Some("de"));
        assert_eq!(with_known("El Informe Anual").as_deref(), Some("es"));
    }
}
