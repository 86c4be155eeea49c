#!/usr/bin/env bash
# A crawl in miniature: make one, load URLs, look at it, change it, go back in time, compact; then fetch a simulated web.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

say() { printf '\n\033[1m# %s\033[0m\n' "$1"; }
run() { printf '\033[36m$ gossamer %s\033[0m\n' "$*"; gossamer "$@"; }

say "Two lists of URLs: 200,000, then 50,000 of which 20,000 are known already"
python "$here/make_urls.py" first.csv 200000 0
python "$here/make_urls.py" second.csv 50000 180000

say "A crawl is a directory of open files"
run init mycrawl
cd mycrawl
run load crawldb ../first.csv
run load crawldb ../second.csv

say "Every load is one snapshot; the second is a change set that is merged when you read"
run status
run read crawldb --prefix example.wiki --where "inlinks >= 12" --columns url,status,inlinks,depth --limit 5
run snapshots list

say "What did the second load change?"
run snapshots diff 1 2 --rows crawldb

say "Fold the change set into the base, shard by shard"
run compact crawldb
run status

say "Seeds: a URL a line, perhaps with metadata; what is known stays as it is, bad lines are told"
printf 'https://www.wiki.example/section-2/page-2\nexample.org\thttps://example.org/news/1\thttps://example.org/news/2\nhttps://example.org/\tscore=2\tlang=en\nnot a url\n' > ../seeds.txt
run inject ../seeds.txt
run read crawldb --url example.org

say "What is in the crawldb?"
run read crawldb --stats --limit 5

say "What would be fetched next, and why not the rest? Then make two batches of it"
run --set generate.max_per=3000 generate --top 10000 --dry-run
run --set generate.max_per=3000 generate --top 10000 --batches 2
run batches list
run read fetchlist --segment r000001-1 --columns url,score,parts --limit 3

say "Go back to the first load: a new snapshot, nothing is deleted"
run snapshots rollback 1
run status

say "The same tables from Python, as Ibis expressions"
cat > count.py <<'PY'
from gossamer import Crawl

if __name__ == "__main__":
    with Crawl(".") as crawl:
        urls = crawl.table("crawldb")
        print(urls.group_by("host").agg(urls=urls.count(), inlinks=urls.inlinks.sum()).order_by("host").execute())
PY
printf '\033[36m$ python count.py\033[0m\n'
python count.py

say "A simulated web: 300 sites of all kinds, computed from a seed; what one of its pages is"
run simweb describe --hosts 300 --pages 5000
run simweb describe http://www.hojafa.test/ --hosts 300 --pages 5000 --at 2026-03-01

say "The truth about it as Parquet, without a crawl; its seeds go into a crawl like any others"
run --quiet simweb truth ../truth --hosts 300 --pages 5000
run inject ../truth/seeds.txt

say "Serve it, and crawl it politely: two rounds, at five requests a second to a host"
gossamer --json simweb serve --hosts 300 --pages 5000 --calm --port 0 --log ../access.log > ../serving.json &
server=$!
until [ -s ../serving.json ]; do kill -0 $server; sleep 0.1; done
port=$(python -c 'import json; print(json.load(open("../serving.json"))["port"])')
cat > gossamer.toml <<TOML
[fetch]
delay_ms = 200
connect_to = { "*.test" = "127.0.0.1:$port", "*.example" = "127.0.0.1:$port" }   # nothing leaves this machine
[generate]
top = 1000
max_per = 5
TOML
run snapshots rollback 0
python - > ../some.txt <<'PY'
import pyarrow.parquet as pq

print(*pq.read_table("../truth/urls", columns=["url"]).column("url").to_pylist()[::7], sep="\n")
PY
run inject ../truth/seeds.txt ../some.txt
run crawl --rounds 2

say "What became of each URL, and where its bytes are"
run read fetch --columns url,outcome,http_code,error,warc_file,warc_offset --limit 5
run read hosts --columns host,requests,successes,crawl_delay_ms,latency_ms --limit 5
ls -lh segments/*/warc

say "Was that polite? The server's own log tells"
kill -INT $server; wait $server
run simweb politeness ../access.log --delay 0.2

say "The map of what runs"
run graph

say "Now your own: gossamer init mycrawl && cd mycrawl && gossamer inject YOUR-SEEDS.txt   (a URL a line; see docs/seeds.md)"
