//! Four interfaces to one core: the library, the command line, HTTP and MCP, over one home and one store.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use skills_api::operations::{Caller, Method, Service, operation, to_query};
use skills_api::{CoreParts, ErrorBody, Local};
use skills_config::{Arguments, Config, Env};
use std::sync::Arc;

use crate::cli_runs_fixture::RunsFixture;

/// The response of an interface: the result, or the content of the error envelope.
pub type CallResult = Result<Value, Value>;

/// The four interfaces.
pub struct Doors {
    pub fixture: RunsFixture,
    runtime: tokio::runtime::Runtime,
    service: Service,
    server: Child,
    address: String,
    mcp: Child,
    mcp_in: ChildStdin,
    mcp_out: BufReader<ChildStdout>,
    last_id: u64,
}

impl Doors {
    pub fn open(fixture: RunsFixture) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let home = fixture.home.path();
        let roots = vec![fixture.home.skills()];
        let arguments = Arguments { roots, ..Arguments::default() };
        let config = Config::load(&home.join("work"), &Env::at(home.join("home")), &arguments).unwrap();
        let local = runtime.block_on(Local::open_once(config, CoreParts::Index)).unwrap();
        let local = Arc::new(local.with_sandbox(crate::runs_place::sandbox()));
        let service = Service { core: local.clone(), sessions: local };

        let root = fixture.home.skills();
        let mut server = fixture
            .command()
            .arg("--root")
            .arg(&root)
            .args(["serve", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let address = address(&mut server);
        let mut mcp = fixture
            .command()
            .arg("--root")
            .arg(&root)
            .args(["mcp", "--scope", "read,run,decide,admin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mcp_in = mcp.stdin.take().unwrap();
        let mcp_out = BufReader::new(mcp.stdout.take().unwrap());
        let mut doors = Self { fixture, runtime, service, server, address, mcp, mcp_in, mcp_out, last_id: 0 };
        doors.initialize();
        doors.ready();
        doors
    }

    /// Waits until the service has read its skills: before that its ranking is another.
    fn ready(&mut self) {
        while self.http("runtime.health", &json!({})).unwrap()["ready"] != json!(true) {
            std::thread::yield_now();
        }
    }

    fn initialize(&mut self) {
        let answer = self.rpc(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "parity", "version": "1"}}),
        );
        assert!(answer["result"]["serverInfo"].is_object(), "{answer}");
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(self.mcp_in, "{note}").unwrap();
    }

    fn rpc(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        writeln!(self.mcp_in, "{request}").unwrap();
        self.mcp_in.flush().unwrap();
        loop {
            let mut line = String::new();
            assert!(self.mcp_out.read_line(&mut line).unwrap() > 0, "the MCP server ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            // Notifications of the server may arrive in between.
            if answer["id"] == json!(self.last_id) {
                return answer;
            }
        }
    }

    /// By the table itself, in this process.
    pub fn library(&self, name: &str, arguments: &Value) -> CallResult {
        let caller = Caller::anyone();
        let call = operation(name).unwrap().call(&self.service, &caller, arguments.clone());
        self.runtime
            .block_on(call)
            .map_err(|error| serde_json::to_value(ErrorBody::from(&error)).unwrap()["error"].clone())
    }

    /// By the binary with `--json`.
    pub fn cli(&self, args: &[&str]) -> CallResult {
        let answer = self.fixture.run(&[args, &["--json"]].concat());
        match serde_json::from_str(&answer.stdout) {
            Ok(value) => Ok(value),
            Err(_) => Err(answer.error()["error"].clone()),
        }
    }

    pub fn http(&self, name: &str, arguments: &Value) -> CallResult {
        let route = operation(name).unwrap().route;
        let (mut path, rest) = route.fill(arguments.as_object().unwrap().clone()).unwrap();
        let body = if route.method == Method::Get {
            let query = to_query(&rest);
            if !query.is_empty() {
                path = format!("{path}?{query}");
            }
            String::new()
        } else {
            Value::Object(rest).to_string()
        };
        let (status, answer) = self.request(&route.method.to_string(), &path, &body);
        if (200..300).contains(&status) { Ok(answer) } else { Err(answer["error"].clone()) }
    }

    fn request(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            unchunked(body)
        } else {
            body.to_owned()
        };
        (status, serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {answer}")))
    }

    pub fn mcp(&mut self, name: &str, arguments: &Value) -> CallResult {
        let mut arguments = arguments.clone();
        arguments["explain"] = json!(true);
        let answer = self.rpc("tools/call", json!({"name": name, "arguments": arguments}));
        let result = &answer["result"];
        assert!(result.is_object(), "{answer}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        if result["isError"] == json!(true) {
            return Err(text["error"].clone());
        }
        assert_eq!(text, result["structuredContent"], "what a model reads is what a program gets");
        Ok(text)
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.mcp] {
            // It may be deleted already.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The address that a service prints.
fn address(server: &mut Child) -> String {
    let mut out = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    while out.read_line(&mut line).unwrap() > 0 {
        if let Some((_, rest)) = line.split_once("http://") {
            let end =
                rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')).unwrap_or(rest.len());
            return rest[..end].to_owned();
        }
        line.clear();
    }
    let mut message = String::new();
    drop(server.stderr.take().unwrap().read_to_string(&mut message));
    panic!("the service printed no address: {message}");
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        out.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    out
}
