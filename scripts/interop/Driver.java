import java.util.*;
import java.util.concurrent.*;
import redis.clients.jedis.*;
import redis.clients.jedis.args.*;
import redis.clients.jedis.params.*;

/** Drives Jedis, whose tests need containers: prints a line for each thing that it did, with what came of it. */
public class Driver {
    interface Step { Object run(Jedis jedis) throws Exception; }

    static HostAndPort address;
    static JedisClientConfig config;
    static final Map<String, Step> STEPS = new LinkedHashMap<>();

    static Jedis connect() { return new Jedis(address, config); }

    static String failure(Step step) {
        try (Jedis jedis = connect()) { return "no error: " + show(step.run(jedis)); }
        catch (Exception error) { return error.getClass().getSimpleName() + ": " + error.getMessage(); }
    }

    static String show(Object value) {
        if (value instanceof byte[] bytes) return Arrays.toString(bytes);
        if (value instanceof Object[] values) return show(Arrays.asList(values));
        if (value instanceof Response<?> response) return show(response.get());
        if (value instanceof Set<?> set) { List<String> all = new ArrayList<>(); set.forEach(it -> all.add(show(it))); Collections.sort(all); return all.toString(); }
        if (value instanceof Map<?, ?> map) { TreeMap<String, String> all = new TreeMap<>(); map.forEach((k, v) -> all.put(show(k), show(v))); return all.toString(); }
        if (value instanceof Collection<?> list) { List<String> all = new ArrayList<>(); list.forEach(it -> all.add(show(it))); return all.toString(); }
        return String.valueOf(value);
    }

    static List<Object> all(Object... values) { return Arrays.asList(values); }

    static {
        STEPS.put("strings", j -> all(j.set("a", "x"), j.append("a", "y"), j.get("a"), j.incrBy("n", 4), j.mset("b", "1", "c", "2"), j.mget("b", "c", "none"), j.setGet("a", "z"), j.getEx("a", GetExParams.getExParams().ex(9)), j.ttl("a")));
        STEPS.put("binary", j -> all(j.set(new byte[] {0, -1, 13, 10}, new byte[] {13, 10, 0}), j.get(new byte[] {0, -1, 13, 10})));
        STEPS.put("large", j -> all(j.set("large", "x".repeat(3 << 20)), j.get("large").length()));
        STEPS.put("hashes", j -> all(j.hset("h", Map.of("a", "1", "b", "2")), j.hgetAll("h"), j.hmget("h", "a", "z"), j.hincrBy("h", "a", 3), j.hdel("h", "b"), j.hset("h1", "owner", "ada"), j.hrandfield("h1")));
        STEPS.put("lists", j -> all(j.rpush("l", "1", "2", "3"), j.lrange("l", 0, -1), j.lmove("l", "m", ListDirection.LEFT, ListDirection.RIGHT), j.lmpop(ListDirection.LEFT, 2, "l", "m"), j.lpos("m", "1")));
        STEPS.put("sets", j -> all(j.sadd("s", "1", "2"), j.smembers("s"), j.smismember("s", "1", "9"), j.sunionstore("u", "s"), j.sintercard("s", "u")));
        STEPS.put("sorted sets", j -> all(j.zadd("z", Map.of("a", 1.0, "b", 2.0)), j.zrangeWithScores("z", 0, -1), j.zincrby("z", 2.5, "a"), j.zmscore("z", "a", "none"), j.zpopmin("z"), j.zrank("z", "a"), j.zunion(new ZParams(), "z")));
        STEPS.put("streams", j -> all(j.xadd("x", new StreamEntryID("1-1"), Map.of("f", "v")), j.xgroupCreate("x", "g", new StreamEntryID("0-0"), false), j.xreadGroup("g", "c", XReadGroupParams.xReadGroupParams(), Map.of("x", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY)), j.xpending("x", "g"), j.xack("x", "g", new StreamEntryID("1-1")), j.xlen("x"), j.xread(XReadParams.xReadParams().block(20), Map.of("x", new StreamEntryID("9-9")))));
        STEPS.put("other types", j -> all(j.setbit("i", 7, true), j.bitcount("i"), j.bitfield("i", "GET", "u8", "0"), j.pfadd("p", "a"), j.pfcount("p"), j.geoadd("o", 1, 2, "m"), j.geopos("o", "m"), j.geosearch("o", "m", 1, GeoUnit.KM)));
        STEPS.put("keys", j -> all(j.set("k", "1"), j.expire("k", 100), j.persist("k"), j.exists("k", "none"), j.type("k"), j.rename("k", "k2"), j.copy("k2", "k3", true), j.objectEncoding("k3"), j.restore("k4", 0, j.dump("k3")), j.get("k4"), j.del("k2", "k3", "k4"), j.sort("none")));
        STEPS.put("scan", j -> {
            for (int it = 0; it < 200; it++) j.set("scan:" + it, "x");
            Set<String> found = new HashSet<>();
            String cursor = "0";
            do { var result = j.scan(cursor, new ScanParams().match("scan:*").count(30)); found.addAll(result.getResult()); cursor = result.getCursor(); } while (!cursor.equals("0"));
            return found.size();
        });
        STEPS.put("pipeline", j -> { var pipeline = j.pipelined(); for (int it = 0; it < 5000; it++) { pipeline.set("user:" + it, "v" + it); pipeline.get("user:" + it); } var got = pipeline.syncAndReturnAll(); return all(got.size(), got.get(9999)); });
        STEPS.put("pipeline with errors", j -> { var pipeline = j.pipelined(); pipeline.set("a", "x"); pipeline.lpush("a", "1"); pipeline.get("a"); return pipeline.syncAndReturnAll(); });
        STEPS.put("transaction", j -> { var t = j.multi(); t.set("a", "1"); t.incr("a"); t.get("a"); return t.exec(); });
        STEPS.put("transaction discarded", j -> { var t = j.multi(); t.set("a", "never"); return all(t.discard(), j.get("a")); });
        STEPS.put("transaction with errors", j -> { var t = j.multi(); t.set("a", "x"); t.incr("a"); return t.exec(); });
        STEPS.put("watch", j -> { j.watch("w"); try (Jedis other = connect()) { other.set("w", "1"); } var t = j.multi(); t.set("w", "2"); return all(t.exec(), j.get("w")); });
        STEPS.put("blocking", j -> {
            var popped = CompletableFuture.supplyAsync(() -> { try (Jedis other = connect()) { return other.blpop(10, "queue"); } });
            Thread.sleep(50);
            return all(j.rpush("queue", "job"), popped.get(10, TimeUnit.SECONDS), j.blpop(0.05, "nothing"), j.bzpopmin(0.05, "nothing"), j.brpoplpush("nothing", "l", 1));
        });
        STEPS.put("publish and subscribe", j -> {
            List<String> heard = Collections.synchronizedList(new ArrayList<>());
            var ready = new CountDownLatch(2);
            var listener = new JedisPubSub() {
                @Override public void onSubscribe(String channel, int count) { heard.add("subscribed " + channel + " " + count); ready.countDown(); }
                @Override public void onMessage(String channel, String message) { heard.add(channel + " " + message); if (message.equals("end")) unsubscribe(); }
                @Override public void onUnsubscribe(String channel, int count) { heard.add("unsubscribed " + count); }
            };
            var listening = CompletableFuture.supplyAsync(() -> { try (Jedis other = connect()) { other.subscribe(listener, "c1", "c2"); return other.ping(); } });
            ready.await(10, TimeUnit.SECONDS);
            Object published = all(j.publish("c1", "m"), j.publish("c1", "end"));
            Object after = listening.get(10, TimeUnit.SECONDS);
            return all(published, after, heard);
        });
        STEPS.put("scripts", j -> { String digest = j.scriptLoad("return redis.call('get', KEYS[1])"); return all(j.evalsha(digest, 1, "a"), j.eval("return {KEYS[1], ARGV[1]}", 1, "k", "v"), j.scriptExists(digest), failure(it -> it.evalsha("0".repeat(40))), failure(it -> it.eval("return redis.error_reply('NO why')"))); });
        STEPS.put("functions", j -> all(j.functionLoadReplace("#!lua name=lib\nredis.register_function('f', function(k, a) return a[1] end)"), j.fcall("f", List.of("k"), List.of("x")), j.functionFlush()));
        STEPS.put("databases", j -> all(j.select(3), j.set("only", "3"), j.dbSize(), j.swapDB(3, 4), j.get("only"), j.select(4), j.get("only"), j.move("only", 0), j.select(0), j.get("only")));
        STEPS.put("users", j -> { j.aclSetUser("ada", "on", ">secret", "~user:*", "+@all"); try (Jedis other = connect()) { return all(other.auth("ada", "secret"), other.aclWhoAmI(), other.set("user:ada", "1"), failure(it -> { it.auth("ada", "secret"); return it.set("other", "1"); }), failure(it -> it.auth("ada", "wrong"))); } });
        STEPS.put("errors", j -> all(failure(it -> it.lpush("n", "1")), failure(it -> it.sendCommand(() -> "NOSUCH".getBytes())), failure(it -> it.setrange("a", -1, "x"))));
        STEPS.put("pool", j -> {
            try (var pool = new JedisPooled(address, config)) {
                var workers = Executors.newFixedThreadPool(8);
                List<Future<Long>> sums = new ArrayList<>();
                for (int it = 0; it < 8; it++) sums.add(workers.submit(() -> { long last = 0; for (int n = 0; n < 200; n++) last = pool.incr("many"); return last; }));
                long most = 0;
                for (var sum : sums) most = Math.max(most, sum.get());
                workers.shutdown();
                return most;
            }
        });
        STEPS.put("name and reset", j -> all(j.clientSetname("driver"), j.clientGetname(), j.sendCommand(Protocol.Command.RESET), j.sendCommand(Protocol.Command.CLIENT, "GETNAME")));
    }

    public static void main(String[] arguments) {
        address = new HostAndPort("127.0.0.1", Integer.parseInt(arguments[0]));
        config = DefaultJedisClientConfig.builder().protocol(arguments[1].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2).timeoutMillis(20_000).build();
        try (Jedis jedis = connect()) { jedis.flushAll(); }
        STEPS.forEach((name, step) -> {
            String outcome = "passed", what;
            try (Jedis jedis = connect()) { what = show(step.run(jedis)); }
            catch (Exception error) { outcome = "failed"; what = error.toString(); }
            System.out.println(outcome + "\t" + name + "\t" + what.replace("\n", " "));
        });
        System.exit(0);
    }
}
