#!/usr/bin/env bash
# A crawl in miniature: make one, load URLs, look at it, change it, go back in time, compact.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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

say "The map of what runs"
run graph

say "Now your own: gossamer init mycrawl && cd mycrawl && gossamer load crawldb YOUR.csv   (columns: url, domain, …; see docs/tables.md)"
