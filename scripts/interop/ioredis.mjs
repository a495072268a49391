// Drives ioredis, whose package has no tests: prints a line of JSON for each thing that it did, with what came of it.
//   node ioredis.mjs PORT FOLDER-WITH-NODE_MODULES
import { createRequire } from "node:module";

const [port, folder] = process.argv.slice(2);
const { Redis } = createRequire(`${folder}/`)("ioredis");
const options = { port: Number(port), host: "127.0.0.1", lazyConnect: true };
const opened = [];
const connect = async (more = {}) => {
  const client = new Redis({ ...options, ...more });
  client.on("error", () => {});
  opened.push(client);
  await client.connect();
  return client;
};
const text = (value) =>
  JSON.stringify(value, (_, it) => (it?.type === "Buffer" ? Buffer.from(it.data).toString("latin1") : it instanceof Error ? `${it}` : it));
const failure = (promise) => promise.then(() => "no error", (error) => `${error}`);
const heard = (client, event, act) => new Promise((done) => (client.once(event, (...it) => done(it)), act?.()));

const tests = {
  strings: async (r) => [await r.set("a", "x"), await r.get("a"), await r.append("a", "y"), await r.getrange("a", 0, -1), await r.incr("n"), await r.getset("n", 5), await r.setnx("n", 1), await r.mset("b", 1, "c", 2), await r.mget("b", "c", "d"), await r.getdel("b")],
  binary: async (r) => [await r.set(Buffer.from([0, 255, 13, 10]), Buffer.from([13, 10, 0])), await r.getBuffer(Buffer.from([0, 255, 13, 10]))],
  large: async (r) => [await r.set("large", "x".repeat(3 << 20)), (await r.get("large")).length, await r.strlen("large")],
  hashes: async (r) => [await r.hset("h", { a: 1, b: 2 }), await r.hgetall("h"), await r.hmget("h", "a", "z"), await r.hincrby("h", "a", 3), await r.hdel("h", "b"), await r.hscan("h", 0), await r.hset("h1", "owner", "ada"), await r.hget("h1", "owner")],
  lists: async (r) => [await r.rpush("l", 1, 2, 3), await r.lrange("l", 0, -1), await r.lpop("l", 2), await r.lmove("l", "m", "LEFT", "RIGHT"), await r.lpos("m", 3), await r.linsert("m", "BEFORE", 3, 2)],
  sets: async (r) => [await r.sadd("s", 1, 2), (await r.smembers("s")).sort(), await r.sismember("s", 1), await r.sinterstore("t", "s", "none"), await r.smove("s", "t", 1)],
  "sorted sets": async (r) => [await r.zadd("z", 1, "a", 2, "b"), await r.zrange("z", 0, -1, "WITHSCORES"), await r.zincrby("z", 2.5, "a"), await r.zrangebyscore("z", "-inf", "+inf"), await r.zpopmin("z"), await r.zadd("z", "NX", "GT", 1, "a").catch(String)],
  streams: async (r) => [await r.xadd("x", "1-1", "f", "v"), await r.xgroup("CREATE", "x", "g", "0"), await r.xreadgroup("GROUP", "g", "c", "COUNT", 5, "STREAMS", "x", ">"), await r.xpending("x", "g"), await r.xack("x", "g", "1-1"), await r.xrange("x", "-", "+"), await r.xlen("x"), await r.xreadgroup("GROUP", "g", "c", "BLOCK", 20, "STREAMS", "x", ">")],
  "other types": async (r) => [await r.setbit("i", 7, 1), await r.bitcount("i"), await r.bitfield("i", "GET", "u8", 0), await r.pfadd("p", "a"), await r.pfcount("p"), await r.geoadd("o", 1, 2, "m"), await r.geosearch("o", "FROMMEMBER", "m", "BYRADIUS", 1, "km", "ASC")],
  keys: async (r) => [await r.set("k", 1, "EX", 100), await r.ttl("k"), await r.persist("k"), await r.exists("k", "k2"), await r.type("k"), await r.rename("k", "k3"), await r.copy("k3", "k4"), await r.object("ENCODING", "k4"), await r.del("k3", "k4"), await r.unlink("none"), await r.touch("a")],
  scan: async (r) => {
    await r.mset(...Array.from({ length: 200 }, (_, it) => [`scan:${it}`, it]).flat());
    const found = new Set();
    for await (const keys of r.scanStream({ match: "scan:*", count: 30 })) keys.forEach((it) => found.add(it));
    return [...found].sort();
  },
  pipeline: async (r) => r.pipeline().set("a", 1).incr("a").lpush("a", 1).get("a").exec(),
  "long pipeline": async (r) => {
    const pipeline = r.pipeline();
    for (let it = 0; it < 5000; it++) pipeline.set(`user:${it}`, it).get(`user:${it}`);
    const all = await pipeline.exec();
    return [all.length, all.every(([error], it) => !error), all.filter((_, it) => it % 2).every(([, value], it) => value === `${it}`)];
  },
  "many at once": async (r) => (await Promise.all(Array.from({ length: 2000 }, (_, it) => r.incr("many")))).every((value, it) => value === it + 1),
  "automatic pipelining": async () => {
    const client = await connect({ enableAutoPipelining: true });
    return Promise.all(Array.from({ length: 500 }, (_, it) => client.set(`auto:${it % 7}`, it)));
  },
  transaction: async (r) => r.multi().set("a", 1).incr("a").get("a").exec(),
  "transaction without pipeline": async (r) => [await r.multi({ pipeline: false }), await r.set("a", 5), await r.get("a"), await r.exec()],
  "transaction with errors": async (r) => [await r.multi().set("a", "x").incr("a").exec(), await failure(r.multi().set("a").exec()), await r.get("a")],
  "transaction discarded": async (r) => [await r.multi({ pipeline: false }), await r.set("a", "never"), await r.discard(), await r.get("a")],
  watch: async (r) => {
    const other = await connect();
    return [await r.watch("w"), await other.set("w", 1), await r.multi().set("w", 2).exec(), await r.get("w")];
  },
  blocking: async (r) => {
    const other = await connect();
    const popped = other.blpop("queue", 10);
    await new Promise((done) => setTimeout(done, 50));
    return [await r.rpush("queue", "job"), await popped, await r.blpop("nothing", 0.05), await r.brpoplpush("nothing", "l", 0.05), await r.bzpopmin("nothing", 0.05)];
  },
  "publish and subscribe": async (r) => {
    const client = await connect();
    const counts = [await client.subscribe("c1", "c2"), await client.psubscribe("p*")];
    const message = await heard(client, "message", () => r.publish("c2", "m"));
    const pattern = await heard(client, "pmessage", () => r.publish("px", "m"));
    const refused = await failure(client.get("a"));
    return [counts, message, pattern, refused, await client.unsubscribe("c1", "c2"), await client.punsubscribe("p*"), await client.get("many")];
  },
  "shard channels": async (r) => {
    const client = await connect();
    const count = await client.ssubscribe("s1");
    return [count, await heard(client, "smessage", () => r.spublish("s1", "m")), await client.sunsubscribe("s1")];
  },
  scripts: async (r) => {
    r.defineCommand("echoes", { numberOfKeys: 1, lua: "return {KEYS[1], ARGV[1]}" });
    const digest = await r.script("LOAD", "return redis.call('get', KEYS[1])");
    return [await r.echoes("k", "v"), await r.echoes("k", "v"), await r.evalsha(digest, 1, "many"), await r.script("EXISTS", digest), await failure(r.eval("return redis.error_reply('NO why')", 0)), await failure(r.evalsha("0".repeat(40), 0)), await r.pipeline().echoes("k", "w").exec()];
  },
  functions: async (r) => [await r.function("LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('f', function(k, a) return a[1] end)"), await r.fcall("f", 1, "k", "x"), await r.function("FLUSH")],
  monitor: async (r) => {
    const monitor = await r.monitor();
    opened.push(monitor);
    const [, words] = await heard(monitor, "monitor", () => r.set("seen", 1));
    monitor.disconnect();
    return words;
  },
  databases: async (r) => {
    const client = await connect({ db: 3 });
    return [await client.set("only", 3), await r.get("only"), await client.select(0), await client.get("only"), await r.dbsize() > 0];
  },
  users: async (r) => {
    await r.acl("SETUSER", "ada", "on", ">secret", "~user:*", "+@all");
    const client = await connect({ username: "ada", password: "secret" });
    return [await client.acl("WHOAMI"), await client.set("user:ada", 1), await failure(client.set("other", 1)), await failure(client.auth("ada", "wrong"))];
  },
  "names and kinds of errors": async (r) => [await r.client("SETNAME", "driver"), await r.client("GETNAME"), await failure(r.call("NOSUCH", "a")), await failure(r.lpush("n", 1)), await failure(r.call("GET")), await r.call("INFO", "server").then((it) => it.includes("redis_version"))],
  "ready check and reconnection": async () => {
    const client = await connect();
    await client.set("again", 1);
    const id = await client.client("ID");
    await heard(client, "ready", () => client.client("KILL", "ID", id, "SKIPME", "no").catch(() => {}));
    return await client.get("again");
  },
  "quit answers what came before": async () => {
    const client = await connect();
    return Promise.all([client.set("q", 1), client.get("q"), client.quit()]);
  },
};

const main = await connect();
await main.flushall();
for (const [name, test] of Object.entries(tests)) {
  const slow = new Promise((_, reject) => setTimeout(() => reject(new Error("took too long")), 20_000).unref());
  const outcome = await Promise.race([test(main), slow]).then((it) => ["passed", text(it)], (error) => ["failed", `${error.stack}`]);
  console.log(JSON.stringify([name, ...outcome]));
}
opened.forEach((client) => client.disconnect());
process.exit(0);
