//! The store on a server: the kit, and what a server and a network can suffer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../../../tests/postgres/mod.rs"]
mod postgres;
#[path = "../../../tests/store_kit/mod.rs"]
mod store_kit;

use postgres::Server;
use skills_store::{Postgres, PostgresAddress, PostgresOptions};
use store_kit::Time;

async fn open(address: &str, time: &Time) -> Postgres {
    let address = PostgresAddress::parse(address).unwrap();
    Postgres::open_with(&address, &PostgresOptions::default(), Some(time.clock())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kit_on_a_server() {
    let Some(server) = Server::start() else { return };
    store_kit::run_all(async |time: Time| open(&server.store().0, &time).await).await;
}
