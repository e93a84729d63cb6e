//! The address of a store on a server: `postgres://user@host:port/database?pool_size=8`. The password should be given
//! elsewhere: in `PGPASSWORD`, in the password file of `PostgreSQL`, or not at all with a socket and `peer`.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{StoreError, Unavailability};

/// Prefixes of server addresses.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const POOL_SIZE: usize = 16;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum of a time in milliseconds that a server accepts.
const MAX_TIMEOUT_MS: u64 = 2_147_483_647;
const DEFAULT_PORT: u16 = 5432;

/// The address of a store on a server, with its connection settings. Its text form never contains the password.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    pub(super) place: String,
    pub(super) pool_size: usize,
    /// How long an operation waits for a connection.
    pub(super) pool_timeout: Duration,
    root_certificates: Option<PathBuf>,
}

impl std::fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresAddress").field(&self.place).finish()
    }
}

/// Connection settings from the environment, as other `PostgreSQL` clients read them.
struct Environment {
    user: Option<String>,
    password: Option<String>,
    password_file: Option<PathBuf>,
}

impl Environment {
    fn read() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self {
            user: set("PGUSER").or_else(account),
            password: set("PGPASSWORD"),
            password_file: set("PGPASSFILE").map(PathBuf::from).or_else(|| Some(home?.join(".pgpass"))),
        }
    }
}

#[cfg(unix)]
fn account() -> Option<String> {
    nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok().flatten().map(|user| user.name)
}

#[cfg(not(unix))]
fn account() -> Option<String> {
    std::env::var("USERNAME").ok()
}

impl PostgresAddress {
    /// Returns whether a store's address is that of a server.
    pub fn is_one(address: &str) -> bool {
        SCHEMES.iter().any(|scheme| address.starts_with(scheme))
    }

    /// Parses an address. If it contains no password, that is taken from the environment or the password file.
    ///
    /// # Errors
    /// Returns [`StoreError::InvalidRequest`] for an invalid address.
    pub fn parse(address: &str) -> Result<Self, StoreError> {
        Self::with(address, &Environment::read())
    }

    fn with(address: &str, environment: &Environment) -> Result<Self, StoreError> {
        let invalid = |why: &dyn std::fmt::Display| {
            StoreError::InvalidRequest(format!(
                "invalid address of a PostgreSQL store: {why}; expected postgres://USER@HOST:PORT/DATABASE"
            ))
        };
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let (mut pool_size, mut pool_timeout, mut statement) =
            (POOL_SIZE, CONNECT_TIMEOUT, STATEMENT_TIMEOUT);
        let mut root_certificates = None;
        let mut ssl = None;
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = || value.parse::<u64>().map_err(|_| invalid(&format!("`{name}` is not a number")));
            let time = || match number()? {
                ms @ ..=MAX_TIMEOUT_MS => Ok(Duration::from_millis(ms)),
                _ => Err(invalid(&format!("`{name}` is above the maximum of {MAX_TIMEOUT_MS}"))),
            };
            match name {
                "pool_size" => pool_size = usize::try_from(number()?.clamp(1, 1000)).unwrap_or(POOL_SIZE),
                "pool_timeout_ms" => pool_timeout = time()?,
                "statement_timeout_ms" => statement = time()?,
                "schema" if query.contains("options=") => {
                    return Err(invalid(&"`schema` and `options` both set options of the connection"));
                }
                "schema" => rest.push(format!("options=-csearch_path%3D{value}")),
                "sslrootcert" => root_certificates = Some(PathBuf::from(value)),
                "sslmode" => {
                    ssl = Some(match value {
                        "disable" => SslMode::Disable,
                        "prefer" => SslMode::Prefer,
                        "require" | "verify-ca" | "verify-full" => SslMode::Require,
                        _ => return Err(invalid(&"`sslmode` is disable, prefer, require or verify-full")),
                    });
                }
                _ => rest.push(pair.to_owned()),
            }
        }
        let address = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        // The library does not repeat the address in its errors.
        let mut config = Config::from_str(&address).map_err(|error| invalid(&error))?;
        let user = config.get_user().map(str::to_owned).or_else(|| environment.user.clone());
        let user = user.ok_or_else(|| invalid(&"it names no user"))?;
        config.user(&user);
        if config.get_hosts().is_empty() {
            config.host("localhost");
        }
        // Of several servers one is the primary; a standby would refuse every write.
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let database = config.get_dbname().unwrap_or(&user).to_owned();
        config.dbname(&database);
        let servers = servers(&config);
        // The part of a password after an unescaped `@` would be shown, logged and looked up as the name of a host.
        if database.contains('@') || servers.iter().any(|(host, _)| host.contains('@')) {
            return Err(invalid(&"the host or the database contains `@`; write `@` in a password as `%40`"));
        }
        if config.get_password().is_none() {
            let password = environment.password.clone().or_else(|| {
                password_of_all(environment.password_file.as_deref()?, &servers, &database, &user)
            });
            if let Some(password) = password {
                config.password(password);
            }
        }
        // Each of the hosts can get the password, and `hostaddr` is connected to instead of `host`.
        let is_local = servers.iter().all(|(host, _)| is_local(host))
            && config.get_hostaddrs().iter().all(|address| is_local(&address.to_string()));
        let (host, port) =
            servers.into_iter().next().unwrap_or_else(|| ("localhost".to_owned(), DEFAULT_PORT));
        // Connections to other machines are encrypted and the server is verified, unless the address states otherwise.
        config.ssl_mode(ssl.unwrap_or(if is_local { SslMode::Disable } else { SslMode::Require }));
        config.application_name("skill-workbench");
        config.connect_timeout(CONNECT_TIMEOUT);
        let config_options = config.get_options().unwrap_or_default().to_owned();
        let options = format!(
            "{config_options} -c statement_timeout={} -c lock_timeout={} -c idle_in_transaction_session_timeout=60000 \
                -c timezone=UTC",
            statement.as_millis(),
            statement.as_millis()
        );
        config.options(options.trim());
        let schema =
            config_options.split("search_path=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let escaped = |schema: &str| schema.replace('%', "%25").replace('&', "%26");
        let schema = schema.map(|schema| format!("?schema={}", escaped(schema))).unwrap_or_default();
        let host = host.replace('/', "%2F");
        let place = format!("postgres://{user}@{host}:{port}/{database}{schema}");
        Ok(Self { config, place, pool_size, pool_timeout, root_certificates })
    }

    /// Returns the address without the password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the TLS settings, with the certificates that the system trusts, and those of `sslrootcert`.
    pub(super) fn tls(&self) -> Result<MakeRustlsConnect, StoreError> {
        let failed = |why: &dyn std::fmt::Display| StoreError::Unavailable {
            cause: Unavailability::Unopenable,
            action: format!("prepare TLS for {}", self.place),
            reason: why.to_string(),
        };
        let mut roots = Vec::new();
        if let Some(file) = &self.root_certificates {
            let unreadable = |why: &dyn std::fmt::Display| failed(&format!("{}: {why}", file.display()));
            for certificate in CertificateDer::pem_file_iter(file).map_err(|e| unreadable(&e))? {
                roots.push(certificate.map_err(|e| unreadable(&e))?);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(roots, Arc::clone(&provider))
            .map_err(|e| failed(&e))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| failed(&e))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }
}

/// Returns the hosts (or folders of sockets) of a configuration with their ports.
fn servers(config: &Config) -> Vec<(String, u16)> {
    let port = |at: usize| match config.get_ports() {
        [] => DEFAULT_PORT,
        [one] => *one,
        ports => ports.get(at).copied().unwrap_or(DEFAULT_PORT),
    };
    let host = |host: &Host| match host {
        Host::Tcp(host) => host.clone(),
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    };
    config.get_hosts().iter().enumerate().map(|(at, one)| (host(one), port(at))).collect()
}

/// Returns whether a connection to a host stays on this machine.
fn is_local(host: &str) -> bool {
    host.starts_with('/') || matches!(host, "localhost" | "127.0.0.1" | "::1")
}

/// Returns the password that a password file has for all of some servers, because a connection has one for all; `None`
/// if it has none for one of them, or different ones.
fn password_of_all(file: &Path, servers: &[(String, u16)], database: &str, user: &str) -> Option<String> {
    let mut passwords = servers.iter().map(|(host, port)| {
        let host = if host.starts_with('/') { "localhost" } else { host };
        password_in(file, [host, &port.to_string(), database, user])
    });
    let first = passwords.next()??;
    passwords.all(|password| password.as_ref() == Some(&first)).then_some(first)
}

/// Returns the password in a password file (<https://www.postgresql.org/docs/current/libpq-pgpass.html>) for a host,
/// port, database and user. A file that others can read is ignored, as by other clients.
fn password_in(file: &Path, requested: [&str; 4]) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    if let Ok(Some(excess)) = skills_base::private_files::excess(file, 0o600) {
        tracing::warn!("{} is ignored: others have access to it ({excess:03o})", file.display());
        return None;
    }
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, leading) = fields.split_last()?;
        let fits = leading.len() == requested.len()
            && leading.iter().zip(requested).all(|(field, requested)| field == "*" || field == requested);
        fits.then(|| password.clone())
    })
}

/// Splits a line into fields, which may contain escaped colons and backslashes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => {
                if let (Some(field), Some(next)) = (fields.last_mut(), characters.next()) {
                    field.push(next);
                }
            }
            other => {
                if let Some(field) = fields.last_mut() {
                    field.push(other);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment { user: Some("ana".into()), password: None, password_file: None }
    }

    #[test]
    fn passwords_are_never_part_of_the_text() {
        let address =
            PostgresAddress::with("postgres://kim:s3cret@db.example:5433/runs", &environment()).unwrap();
        assert_eq!(address.place(), "postgres://kim@db.example:5433/runs");
        assert!(!format!("{address:?}").contains("s3cret"));
        assert_eq!(address.config.get_password(), Some(b"s3cret".as_slice()));
        let error =
            PostgresAddress::with("postgres://kim:s3cret@db:notaport/runs", &environment()).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn the_text_with_a_schema_is_an_address() {
        let address = |text: &str| PostgresAddress::with(text, &environment()).unwrap();
        let set = address("postgres://kim@localhost/runs?pool_size=2&options=-csearch_path%3Dmig");
        assert_eq!(set.place(), "postgres://kim@localhost:5432/runs?schema=mig");
        let read = address(set.place());
        assert_eq!((read.place(), read.config.get_options()), (set.place(), set.config.get_options()));
        let odd = address("postgres://kim@localhost/runs?schema=a%2526b");
        assert_eq!(address(odd.place()).config.get_options(), odd.config.get_options());
        assert!(
            PostgresAddress::with("postgres://h/d?schema=a&options=-cwork_mem%3D1MB", &environment())
                .is_err()
        );
    }

    #[test]
    fn missing_parts_have_defaults() {
        let address = PostgresAddress::with("postgres://localhost", &environment()).unwrap();
        assert_eq!(address.place(), "postgres://ana@localhost:5432/ana");
        assert_eq!((address.pool_size, address.config.get_ssl_mode()), (POOL_SIZE, SslMode::Disable));
        let remote =
            PostgresAddress::with("postgresql://db.example/runs?pool_size=3", &environment()).unwrap();
        assert_eq!((remote.pool_size, remote.config.get_ssl_mode()), (3, SslMode::Require));
        for wrong in ["pool_size=many", "pool_timeout_ms=2147483648", "statement_timeout_ms=99999999999"] {
            let address = format!("postgres://h/d?{wrong}");
            assert!(PostgresAddress::with(&address, &environment()).is_err(), "{wrong}");
        }
        assert!(PostgresAddress::with("postgres://h/d?sslmode=none", &environment()).is_err());
    }

    #[test]
    fn tls_is_required_unless_every_host_is_local() {
        let mode =
            |address: &str| PostgresAddress::with(address, &environment()).unwrap().config.get_ssl_mode();
        for local in [
            "postgres://kim:pw@localhost/runs",
            "postgres://kim:pw@localhost,127.0.0.1:5433,[::1]/runs",
            "postgres://kim:pw@localhost/runs?hostaddr=127.0.0.1",
            "postgres://kim:pw@%2Frun%2Fpostgresql/runs",
        ] {
            assert_eq!(mode(local), SslMode::Disable, "{local}");
        }
        for remote in [
            "postgres://kim:pw@localhost:5432,db.example:5432/runs",
            "postgres://kim:pw@localhost/runs?hostaddr=192.0.2.1",
            "postgres://kim:pw@localhost:5432/runs?host=db.example&port=5433",
            "postgres://kim:pw@%2Frun%2Fpostgresql,db.example/runs",
        ] {
            assert_eq!(mode(remote), SslMode::Require, "{remote}");
        }
    }

    #[test]
    fn unescaped_passwords_are_refused_without_being_shown() {
        for address in [
            "postgres://kim:S3CR@ETPW@host/runs",
            "postgres://kim:S3CR@ET/PW@host/runs",
            "postgres://kim:S3CR@ETPW@host:notaport/runs",
            "postgres://kim:S3CR?ETPW@host/runs",
        ] {
            match PostgresAddress::with(address, &environment()) {
                Ok(address) => {
                    assert!(!format!("{} {address:?}", address.place()).contains("ETPW"), "{address:?}");
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(!text.contains("S3CR") && !text.contains("PW"), "{text}");
                }
            }
        }
        assert!(PostgresAddress::with("postgres://kim:S3CR@ETPW@host/runs", &environment()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn passwords_of_a_file_are_for_every_host() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        std::fs::write(&file, "a:*:*:*:one\nb:*:*:*:one\nc:*:*:*:two\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let environment = Environment { password_file: Some(file), ..environment() };
        let password = |hosts: &str| {
            let address =
                PostgresAddress::with(&format!("postgres://kim@{hosts}/runs"), &environment).unwrap();
            address.config.get_password().map(<[u8]>::to_vec)
        };
        assert_eq!(password("a,b").as_deref(), Some(b"one".as_slice()));
        assert_eq!((password("a,c"), password("a,d")), (None, None));
    }

    #[cfg(unix)]
    #[test]
    fn a_private_password_file_is_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        std::fs::write(&file, "# hosts\nother:*:*:*:no\n*:5432:runs:kim:a\\:b\\\\c:d\n").unwrap();
        let environment = Environment { password_file: Some(file.clone()), ..environment() };
        let password = || {
            let address = PostgresAddress::with("postgres://kim@h/runs", &environment).unwrap();
            address.config.get_password().map(<[u8]>::to_vec)
        };
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o600);
        assert_eq!(password().as_deref(), Some(b"a:b\\c:d".as_slice()));
        mode(0o644);
        assert_eq!(password(), None);
    }
}
