//! The settings file that `skills config edit` creates.

/// Every key with its meaning, commented out; removing `#: ` activates a line.
pub const TEMPLATE: &str = "\
# Settings of Skill Workbench. Remove '#: ' before a line to activate it.
# A project may have a .skill-workbench.yaml with the same keys in its repository, except those that only
# your own file may set: editor, trust, policy_file, services, bindings, audit, scripts, notify, connect, api_key_file,
# store, store_mode, retention, plain.

# Folders with skills, searched before those of known clients. Paths are relative to this file.
#: roots:
#:   - ~/skills
#:   - {path: ~/work/team-skills, label: team}

# Watch folders for changes.
#: watch: true

# A theme by name; default: light or dark, to match the terminal's background.
#: theme: dark

# Characters on the screen: auto, unicode or ascii.
#: glyphs: auto

# Key bindings: context, action, one key or a list.
#: keys:
#:   global:
#:     quit: [q, ctrl-q]

# The editor; without it, $VISUAL, then $EDITOR.
#: editor: vim

# Matchers of the router; one set to false is disabled and shown as off.
#: links:
#:   exact: true
#:   lexical: true
#:   typo: true
#:   presence: true
#:   task: true
#:   semantic: true

# How role, status and read-only rules combine with the text score: blended or strict.
#: policy: blended

# Maximum number of results, 1 to 1000.
#: limit: 10

# Whether headings and bodies are ranked.
#: with_body: true

# Show skills as this client would see them.
#: client: claude-code

# Folders whose contracts, scripts and bindings may run as they are, whatever changes in them.
# Only in your own config.yaml. `skills trust` pins individual bundles to their current content instead.
#: trust: [~/skills]

# What may be found, run and attached; see docs/trust-and-policy.md. Only in your own config.yaml.
#: policy_file: ~/.config/skill-workbench/policy.yaml

# Addresses and programs of the services that bindings call; a bundle alone can neither contact an address nor start
# a program. ${...} is replaced with environment variables, so that this file needs no secrets.
#: services:
#:   text_chat: {url: https://api.example.com/v1, headers: {Authorization: 'Bearer ${API_KEY}'}, timeout_seconds: 45}
#:   files: {command: mcp-server-files, args: [/srv/data], env: {MODE: read-only}}
#:   data_baseline: {script: ~/adapters/scripts/data.py}

# Bindings to use instead of the default, by capability.
#: bindings: {text.content.classify: python_text_classify}

# Minimum conformance level of bindings: experimental, standard or strict.
#: conformance: standard

# What the audit log in your data folder records about runs, decisions, trust and policy changes: off, standard, or full
# (contents too, without secrets). Only in your own config.yaml.
#: audit: standard

# Where runs are recorded: a file, or a PostgreSQL database for several machines (without the password: PGPASSWORD or
# ~/.pgpass). Only in your own config.yaml.
#: store: postgres://skills@db.example.com/skills

# Permissions of the store's files: 0600, 0640, or 0660 for a group that shares it (in a folder that the group may
# enter, named with --store). Only in your own config.yaml.
#: store_mode: 0660

# Number of runs executed concurrently, 1 to 64; the default depends on the number of cores.
#: workers: 4

# How much a script may write in a step, and where: its work directory may be on a different volume from the
# store. Only in your own config.yaml.
#: scripts: {disk_mb: 256, files: 2000, work_dir: /mnt/scratch/skills}

# Notifications when a run waits for approval; off by default. The webhook receives a signed
# message (Standard Webhooks), retried with backoff until it is accepted. Only in your own config.yaml.
#: notify:
#:   bell: true
#:   osc: true
#:   webhook: {url: 'https://hooks.example.com/runs', secret_env: SKILLS_WEBHOOK_SECRET}

# The list of runs, and how long they wait for an approval or a signal if neither the launch nor the contract
# specifies it. Views are named filters; see docs/runs.md.
#: runs:
#:   expires_in: 7d
#:   warn_before: 1h
#:   danger_before: 15m
#:   columns: [state, title, skill, id, progress, step, error, by, since]
#:   sort: -since
#:   views: {Failed deploys: 'state:failed skill:deploy*'}
#:   metric_labels: [env]

# Delete ended runs, by final state, and sessions automatically after these times. Only in your own config.yaml.
#: retention: {completed: 30d, failed: 90d, canceled: 30d, sessions: 90d}

# No spinners and no animation on the screen.
#: reduced_motion: true

# Line-based text interface for screen readers, as --plain: commands print labeled lines.
#: plain: true

# Hyperlinks on files and runs in the output of commands (OSC 8), and progress in the tab or task bar of the terminal (OSC
# 9;4). By default where the terminal is known to support them.
#: hyperlinks: false
#: progress: false

# The service to use instead of this machine, and the file with its API key.
#: connect: https://gateway.example.com
#: api_key_file: ~/.config/skill-workbench/key
";
