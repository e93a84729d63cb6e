//! Configuration: where files live (XDG), what the user and the project say.
