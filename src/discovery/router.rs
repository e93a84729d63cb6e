//! The router: takes documents, keeps the index, answers requests.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::analysis::{Analysis, analyse};
use super::answer::{Answer, BodyLine};
use super::document::Document;
use super::embedding::{Embedding, EmbeddingError};
use super::index::Index;
use super::link::{Link, chain, link_names};
use super::reading::Reading;
use super::request::Request;
use super::weights::Weights;
use super::words::Words;
use super::{body_lines, marks, ranking};
use crate::skill::SkillId;

/// A request that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Nothing but blanks.
    #[error("the request is empty; say in a few words what you want to do")]
    Empty,
}

/// A link that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no link `{name}`; there are {known}")]
pub struct UnknownLink {
    /// As given.
    pub name: String,
    /// Those there are, joined.
    pub known: String,
}

/// Ranks skills for requests. Shared by reference for asking; [`Router::update`] needs it alone.
pub struct Router {
    pub(super) weights: Weights,
    pub(super) words: Words,
    pub(super) model: Result<Arc<Embedding>, EmbeddingError>,
    pub(super) links: Vec<Box<dyn Link>>,
    pub(super) off: BTreeSet<String>,
    pub(super) index: Index,
}

impl Router {
    /// An empty router with the embedding of this program. A model that cannot be used leaves out what
    /// needs it, visibly in every answer.
    pub fn new(weights: Weights) -> Self {
        Self::with_model(weights, Embedding::shipped())
    }

    /// An empty router with this embedding, or the reason why there is none.
    pub fn with_model(weights: Weights, model: Result<Arc<Embedding>, EmbeddingError>) -> Self {
        let words = Words::new(weights.stop_words.clone());
        Self { words, model, links: chain(), off: BTreeSet::new(), index: Index::default(), weights }
    }

    /// Switches links off by name.
    ///
    /// # Errors
    /// When there is no such link.
    pub fn without_links<I: IntoIterator<Item = S>, S: Into<String>>(
        mut self,
        names: I,
    ) -> Result<Self, UnknownLink> {
        for name in names {
            let name = name.into();
            if !link_names().contains(&name.as_str()) {
                return Err(UnknownLink { name, known: link_names().join(", ") });
            }
            self.off.insert(name);
        }
        Ok(self)
    }

    /// The weights in force.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// How many skills are indexed.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether nothing is indexed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of them have headings and body in the index.
    pub fn bodies(&self) -> usize {
        self.index.bodies()
    }

    /// Ids in the index, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = &SkillId> {
        self.index.entries().map(|(_, e)| &e.document.id)
    }

    /// Whether the index holds this skill as it is, headings and body included: then there is no need to
    /// read them again. The digest of the document stands for them; without one the answer is no.
    pub fn is_current(&self, document: &Document) -> bool {
        let entry = self.index.slot_of(&document.id).and_then(|slot| self.index.entry(slot));
        entry.is_some_and(|e| e.read && e.document.same_facts(document))
    }

    /// Puts skills in (one that is there is replaced) and takes others out. Texts are counted on all cores;
    /// the index is changed on this thread. Large changes are best handed over in pieces of a few hundred,
    /// so that progress can be shown and questions answered in between.
    pub fn update(&mut self, upserts: Vec<Document>, removed: &[SkillId]) {
        let analyses: Vec<Analysis> = if upserts.len() < 4 {
            upserts.into_iter().map(|d| self.analyse(d)).collect()
        } else {
            upserts.into_par_iter().map(|d| self.analyse(d)).collect()
        };
        self.index.change(analyses, removed, &self.weights);
    }

    fn analyse(&self, document: Document) -> Analysis {
        analyse(document, &self.words, self.model.as_deref().ok(), &self.weights.limits)
    }

    /// Ranks the skills for a request.
    ///
    /// # Errors
    /// When the intent is empty.
    pub fn discover(&self, request: &Request) -> Result<Answer, RequestError> {
        if request.intent.trim().is_empty() {
            return Err(RequestError::Empty);
        }
        Ok(ranking::rank(self, request))
    }

    /// The lines of a body with the most words of a request, at most `limit`, in order of the file.
    /// `first_line` is the number of the body's first line in its file.
    pub fn body_lines(&self, body: &str, first_line: u32, intent: &str, limit: usize) -> Vec<BodyLine> {
        let reading = Reading::new(intent, &self.words);
        let stems: HashSet<&str> = marks::stems(&reading, |id| self.index.vocabulary.stem(id));
        body_lines::body_lines(body, first_line, &stems, &self.words, limit)
    }
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router")
            .field("skills", &self.len())
            .field("bodies", &self.bodies())
            .finish_non_exhaustive()
    }
}
