//! Logging: to a file and to a ring that the workbench shows; never to the terminal it draws on.
