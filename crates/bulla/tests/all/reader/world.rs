//! Logs of known rows, and what a query must answer.

use crate::damage::image::Image;
use crate::damage::world::{Mask, RECIPIENT, environment};
use crate::helpers::Rng;
use crate::register::Register;
use bulla::environment::{AesGcm, Cipher, Environment};
use bulla::keys::{files, signing::SigningKey};
use bulla::store::Store;
use bulla::text::jsonl;
use bulla::{
    Entry, ErasureOrder, Export, Init, Log, NumberField, Options, Producer, Query, ReadReport, Reader,
    Result, Step, TextField, TextFilter, VerifierKey, Verify,
};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::{Checkpoint, SignedNote, tile};
use bulla_testkit::Memory;
use std::io::IoSlice;
use std::sync::Arc;

/// An entry. Its location is its number among all that were appended, whatever number the log gives it.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) time: i64,
    pub(super) operation: String,
    pub(super) processor: Option<String>,
    pub(super) stream: Option<String>,
    pub(super) subjects: Option<Vec<String>>,
    pub(super) actor: Option<String>,
    pub(super) purpose: Option<String>,
    pub(super) status: Option<u32>,
    pub(super) location: String,
    pub(super) payload: Vec<u8>,
}

impl Row {
    pub(super) fn new(time: i64, operation: &str) -> Self {
        Row { time, operation: operation.to_owned(), ..Row::default() }
    }

    pub(super) fn subject(mut self, subject: &str) -> Self {
        self.subjects.get_or_insert_default().push(subject.to_owned());
        self
    }

    pub(super) fn processor(mut self, processor: &str) -> Self {
        self.processor = Some(processor.to_owned());
        self
    }

    pub(super) fn stream(mut self, stream: &str) -> Self {
        self.stream = Some(stream.to_owned());
        self
    }

    /// So many bytes that do not compress.
    pub(super) fn noise(mut self, rng: &mut Rng, bytes: usize) -> Self {
        self.payload.resize_with(bytes, || rng.next() as u8);
        self
    }

    fn append(&self, producer: &mut Producer) {
        let mut entry = Entry::new(&self.operation, &self.location).time(self.time).payload(&self.payload);
        entry.processor = self.processor.as_deref();
        entry.stream = self.stream.as_deref();
        (entry.actor, entry.purpose) = (self.actor.as_deref(), self.purpose.as_deref());
        entry.status = self.status;
        entry.subjects = self.subjects.as_ref().map(|subjects| subjects.iter().map(String::as_str).collect());
        producer.append(&entry).unwrap();
    }

    /// Whether it meets `query`, by what the documentation says.
    pub(super) fn meets(&self, number: u64, query: &Query) -> bool {
        let Query { fields, from, to, first_entry, last_entry } = query;
        let some = |value: &Option<String>| value.clone().into_iter().collect::<Vec<_>>();
        let stream = self.stream.clone().unwrap_or("default".to_owned());
        let has = [
            (TextField::Subject, self.subjects.clone().unwrap_or_default()),
            (TextField::Stream, vec![stream]),
            (TextField::Operation, vec![self.operation.clone()]),
            (TextField::Processor, some(&self.processor)),
            (TextField::Actor, some(&self.actor)),
            (TextField::Purpose, some(&self.purpose)),
            (TextField::Location, vec![self.location.clone()]),
        ];
        let mut meets = true;
        for (field, values) in has {
            let wanted = fields.texts(field);
            let met = |value: &String, filter: &TextFilter| match filter {
                TextFilter::Is(text) => value.as_bytes() == text,
                TextFilter::BeginsWith(text) => value.as_bytes().starts_with(text),
            };
            meets &= wanted.is_empty() || values.iter().any(|value| wanted.iter().any(|one| met(value, one)));
        }
        let wanted = fields.numbers(NumberField::Status);
        let met = |status: u32| wanted.iter().any(|range| range.contains(&u64::from(status)));
        meets &= wanted.is_empty() || self.status.is_some_and(met);
        let times = from.unwrap_or(i64::MIN) as i128..to.map_or(i128::MAX, i128::from);
        let numbers = first_entry.unwrap_or(0)..=last_entry.unwrap_or(u64::MAX);
        meets && times.contains(&i128::from(self.time)) && numbers.contains(&number)
    }
}

/// A log, and the rows that went into it.
pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    keys: Arc<dyn Store>,
    environment: Environment,
    pub(super) key: VerifierKey,
    pub(super) rows: Vec<Row>,
    /// Where the keys of groups come from, of a log with erasure.
    pub(super) register: Option<Arc<Register>>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self::on(Arc::new(Memory::new()), Arc::new(Memory::new()), seed)
    }

    pub(super) fn on(store: Arc<dyn Store>, keys: Arc<dyn Store>, seed: u64) -> Self {
        let environment = environment(seed, Arc::new(AesGcm));
        let init = Init::default().erasure(false).origin("example.com/reader").recipient(RECIPIENT);
        let key = init.create_in(&*store, &*keys, &environment).unwrap().verifier_key;
        World { store, keys, environment, key, rows: Vec::new(), register: None }
    }

    /// A log with erasure.
    pub(super) fn grouped(seed: u64) -> Self {
        Self::grouped_by(seed, Arc::new(AesGcm))
    }

    /// The same, encrypted by another cipher.
    pub(super) fn grouped_by(seed: u64, cipher: Arc<dyn Cipher>) -> Self {
        let (store, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
        let register = Arc::new(Register::default());
        let environment = Environment { subjects: Some(register.clone()), ..environment(seed, cipher) };
        let init = Init::default().origin("example.com/reader").recipient(RECIPIENT);
        let key = init.create_in(&*store, &*keys, &environment).unwrap().verifier_key;
        World { store, keys, environment, key, rows: Vec::new(), register: Some(register) }
    }

    /// An order to erase so many people, as a note.
    pub(super) fn order(&self, people: usize) -> String {
        let file = self.keys.open(files::ERASURE_KEY).unwrap();
        let mut key = vec![0; usize::try_from(file.length().unwrap()).unwrap()];
        file.read_exact_at(&mut key, 0).unwrap();
        let key = SigningKey::parse(std::str::from_utf8(&key).unwrap()).unwrap();
        let log = bulla::config::load(&*self.store).unwrap().0.id;
        let names = (0..people).map(|number| number.to_string()).collect::<Vec<_>>();
        let names = names.iter().map(String::as_str).collect::<Vec<_>>();
        let order = ErasureOrder::give(&key, log, &names, None, &Environment::default()).unwrap();
        order.note().to_owned()
    }

    /// The same log on another medium.
    pub(super) fn moved(self, store: Arc<dyn Store>, keys: Arc<dyn Store>) -> Self {
        World { store, keys, ..self }
    }

    /// The same log with other files, and with a copy of its keys as they are now.
    pub(super) fn again(&self, files: &Image) -> Self {
        let keys = Arc::new(writable(&Image::of_store(&*self.keys)));
        let (store, environment, key) =
            (Arc::new(writable(files)), self.environment.clone(), self.key.clone());
        World { store, keys, environment, key, rows: self.rows.clone(), register: self.register.clone() }
    }

    /// What the writing host keeps of the seal chain.
    pub(super) fn seal_state(&self) -> Vec<u8> {
        Image::of_store(&*self.keys).get(files::SEAL_STATE).to_vec()
    }

    /// The log as its writer left it that was killed.
    pub(super) fn killed(self, log: Log) -> Self {
        let killed = self.again(&self.image());
        drop(log);
        killed
    }

    /// The log as a writer left it that could not replace the seal state as it opened the log.
    pub(super) fn cut_short(self) -> Self {
        let in_the_way = format!("{}.tmp", files::SEAL_STATE);
        self.keys.create_directory(&in_the_way).unwrap();
        self.try_open(Options::default().retries(0)).map(drop).unwrap_err();
        self.keys.remove_directory(&in_the_way).unwrap();
        self.again(&self.image())
    }

    /// Opens it: an epoch begins.
    pub(super) fn open(&self) -> Log {
        self.open_with(Options::default())
    }

    pub(super) fn open_with(&self, options: Options) -> Log {
        let options = options.memory(64 << 20).segment_size(64 << 10).writers(1).compression(0);
        self.try_open(options).unwrap()
    }

    pub(super) fn try_open(&self, options: Options) -> Result<Log> {
        Log::open_stepped(self.store.clone(), self.keys.clone(), options, self.environment.clone())
    }

    /// A block of rows that come from so many producers.
    pub(super) fn block(&mut self, log: &Log, rows: Vec<Row>, producers: usize) {
        let mut handles = (0..producers).map(|_| log.producer().unwrap()).collect::<Vec<_>>();
        for row in rows {
            let row = Row { location: self.rows.len().to_string(), ..row };
            row.append(&mut handles[self.rows.len() % producers]);
            self.rows.push(row);
        }
        for handle in &mut handles {
            let _ = handle.flush().unwrap();
        }
        drain(log);
    }

    pub(super) fn image(&self) -> Image {
        Image::of_store(&*self.store)
    }

    /// The rows that meet `query`, by their numbers in the log, which a full export tells.
    pub(super) fn expected(&self, query: &Query) -> Vec<u64> {
        let numbers = self.numbers();
        let meets = |&(number, row): &(u64, usize)| self.rows[row].meets(number, query);
        numbers.into_iter().filter(meets).map(|(number, _)| number).collect()
    }

    /// Of each entry of the log its row.
    pub(super) fn numbers(&self) -> Vec<(u64, usize)> {
        let lines = export(&self.image(), &self.key, false, self.register.as_ref());
        let numbers = lines.iter().map(|(number, line)| (*number, row_of(line))).collect::<Vec<_>>();
        assert_eq!(numbers.len(), self.rows.len(), "the log has every row");
        numbers
    }

    pub(super) fn verify(&self, store: impl Store + 'static) -> Verify {
        let verify = Verify::open_store(Arc::new(store)).unwrap().threads(1);
        verify.key(self.key.clone()).identity(Arc::new(Mask))
    }

    pub(super) fn reader(&self, store: impl Store + 'static) -> Reader {
        let reader = reader(store, &self.key);
        match &self.register {
            Some(register) => reader.group_keys(register.clone()),
            None => reader,
        }
    }
}

/// Seals and commits whatever there is.
pub(super) fn drain(log: &Log) {
    while log.step(Step::Seal).unwrap() {
        log.step(Step::Commit).unwrap();
    }
}

fn row_of(line: &[u8]) -> usize {
    let line: serde_json::Value = serde_json::from_slice(line).unwrap();
    line["location"].as_str().unwrap().parse().unwrap()
}

pub(super) fn reader(store: impl Store + 'static, key: &VerifierKey) -> Reader {
    let reader = Reader::open_store(Arc::new(store)).unwrap();
    reader.key(key.clone()).identity(Arc::new(Mask)).threads(2)
}

/// Entries as JSON lines, by their numbers.
pub(super) type Answer = Vec<(u64, Vec<u8>)>;

pub(super) fn answer(reader: &Reader, query: &Query) -> Result<(Answer, ReadReport)> {
    let mut answer = Answer::new();
    let report = reader.for_each(query, |number, entry| {
        let mut line = Vec::new();
        jsonl::write_entry(entry, number, &mut line);
        answer.push((number, line));
        Ok(())
    })?;
    assert_eq!(report.entries, answer.len() as u64);
    Ok((answer, report))
}

/// What an export of everything gives.
pub(super) fn exported(image: &Image, key: &VerifierKey, salvage: bool) -> Answer {
    export(image, key, salvage, None)
}

fn export(image: &Image, key: &VerifierKey, salvage: bool, register: Option<&Arc<Register>>) -> Answer {
    let mut export = Export::open_store(Arc::new(image.clone())).unwrap().key(key.clone());
    if let Some(register) = register {
        export = export.group_keys(register.clone());
    }
    let mut out = Vec::new();
    export.identity(Arc::new(Mask)).salvage(salvage).run(&mut out).unwrap();
    out.split_inclusive(|&byte| byte == b'\n').map(|line| (entry_number(line), line.to_vec())).collect()
}

/// The number that a line of an export begins with.
pub(super) fn entry_number(line: &[u8]) -> u64 {
    let value: serde_json::Value = serde_json::from_slice(line).unwrap();
    value["entry"].as_u64().unwrap()
}

/// The same files, to be written to.
pub(super) fn writable(image: &Image) -> Memory {
    let store = Memory::new();
    for path in image.paths() {
        store.create_directory(bulla_store::path::parent(&path)).unwrap();
        put(&store, &path, image.get(&path));
    }
    store
}

fn put(store: &Memory, path: &str, content: &[u8]) {
    store.create(path).unwrap().write_at(&mut [IoSlice::new(content)], 0).unwrap();
}

/// The files of the index.
pub(super) fn index_files(image: &Image) -> Vec<String> {
    image.paths().into_iter().filter(|path| path.starts_with("index/")).collect()
}

pub(super) fn without_index(image: &Image) -> Image {
    index_files(image).iter().fold(image.clone(), |image, path| image.without(path))
}

/// The frames that the checkpoint covers.
pub(super) fn frames(image: &Image) -> Vec<Commitment> {
    let note = SignedNote::parse(image.get("checkpoint")).unwrap();
    let size = Checkpoint::parse(note.text).unwrap().size;
    let mut frames = Vec::new();
    while (frames.len() as u64) < size {
        let (index, left) = (frames.len() as u64 / 256, size - frames.len() as u64);
        let width = left.min(256) as u16;
        let bundle = tile::parse_bundle(image.get(&tile::entries_path(index, width)), width).unwrap();
        frames.extend(bundle.into_iter().map(|bytes| Commitment::decode(bytes).unwrap()));
    }
    frames
}

pub(super) fn blocks(image: &Image) -> Vec<Commitment> {
    frames(image).into_iter().filter(|frame| frame.kind == FrameKind::Block).collect()
}

/// Where the body of a frame of a log without surplus lies.
pub(super) fn body_of(image: &Image, frame: &Commitment) -> (String, usize) {
    let encoded = frame.encode();
    for path in image.paths().into_iter().filter(|path| path.ends_with(".seg")) {
        let content = image.get(&path);
        if let Some(at) = content.windows(encoded.len()).position(|window| window == encoded) {
            return (path, at + encoded.len());
        }
    }
    panic!("frame {} is nowhere", frame.frame);
}

/// What is done in those.
const OPERATIONS: [&str; 4] = ["read", "write", "löschen", "default"];

/// Rows of all kinds.
pub(super) fn varied(rng: &mut Rng) -> Row {
    let long = "l".repeat(300 + rng.below(3) as usize);
    let names = ["user_1", "user_2", "usér_3", "user_4 ", "default", "", "read", &long];
    let mut row = Row::new(rng.below(40_000) as i64 * 250_000_000, rng.one::<&str>(&OPERATIONS));
    if rng.below(3) > 0 {
        row.processor = Some((*rng.one(&["shop", "mailer", "", "user_1"])).to_owned());
    }
    if rng.below(3) > 0 {
        row.stream = Some((*rng.one(&["default", "ström", "", "s"])).to_owned());
    }
    row.subjects = match rng.below(6) {
        0 => None,
        1 => Some(Vec::new()),
        more => Some((0..more - 1).map(|_| (*rng.one(&names)).to_owned()).collect()),
    };
    if rng.below(3) > 0 {
        row.actor = Some((*rng.one(&["ada", "adam", "", "user_1"])).to_owned());
        row.purpose = Some((*rng.one(&["support", "billing", "ada"])).to_owned());
        row.status = Some(*rng.one(&[0, 200, 403, 404, 500]));
    }
    let bytes = rng.below(60) as usize;
    row.noise(rng, bytes)
}

/// Some query.
pub(super) fn some_query(rng: &mut Rng, entries: u64) -> Query {
    let mut query = Query::new();
    if rng.below(2) == 0 {
        query = query.subject(*rng.one(&["user_1", "user_2", "usér_3", "user_4 ", "default", "", "nobody"]));
    }
    if rng.below(3) == 0 {
        query = query.stream(*rng.one(&["default", "ström", "", "s", "none"]));
    }
    if rng.below(3) == 0 {
        query = query.operation(*rng.one(&["read", "write", "löschen", "default", "Read"]));
    }
    if rng.below(3) == 0 {
        query = query.processor(*rng.one(&["shop", "mailer", "", "user_1", "user_2"]));
    }
    if rng.below(5) == 0 {
        query = query.actor(*rng.one(&["ada", "adam", "", "user_1", "nobody"]));
    }
    if rng.below(5) == 0 {
        query = query.purpose(*rng.one(&["support", "billing"]));
    }
    if rng.below(5) == 0 {
        query =
            query.numbers(NumberField::Status, *rng.one(&[0, 400, 404])..=*rng.one(&[404, 499, u64::MAX]));
    }
    // Another value of a field, which meets it as well, or alone.
    while rng.below(3) == 0 {
        let field = *rng.one(&[
            TextField::Subject,
            TextField::Stream,
            TextField::Operation,
            TextField::Processor,
            TextField::Actor,
            TextField::Location,
        ]);
        let text = *rng.one(&["user_1", "user", "s", "default", "read", "r", "shop", "ada", "1", "2", ""]);
        query = match rng.below(2) {
            0 => query.is(field, text),
            _ => query.begins_with(field, text),
        };
    }
    if rng.below(4) == 0 {
        query = query.from(rng.below(40_000) as i64 * 250_000_000);
    }
    if rng.below(4) == 0 {
        query = query.to(rng.below(40_000) as i64 * 250_000_000);
    }
    if rng.below(4) == 0 {
        let first = rng.below(entries + 2);
        query = query.entries(first..=first + rng.below(entries));
    }
    query
}

/// A log of some epochs, segments and blocks.
pub(super) fn some_log(seed: u64) -> World {
    let (mut world, mut rng) = (World::new(seed), Rng(seed));
    for _ in 0..1 + rng.below(3) {
        let log = world.open();
        for _ in 0..1 + rng.below(40) {
            let most = if rng.below(8) == 0 { 60 } else { 5 };
            let mut rows = (0..=rng.below(most)).map(|_| varied(&mut rng)).collect::<Vec<_>>();
            if rng.below(10) == 0 {
                let last = rows.pop().unwrap();
                rows.push(last.noise(&mut rng, 20_000));
            }
            let producers = 1 + rng.below(3) as usize;
            world.block(&log, rows, producers);
        }
        log.close().unwrap();
    }
    world
}
