#!/usr/bin/env bash
# raw-tables.sh PAGE... makes pages of docs/results short: of each kind of table the first stays (20 rows of it), and the rows of all
# are kept next to the page as data: NAME.csv what each network costs, NAME-instructions.csv time and instructions, NAME-links.csv how
# bonds used their links.
# The pages are what netdelta report --format md writes; nothing is computed or rounded anew.
set -euo pipefail

for page in "$@"; do
	awk -v base="${page%.md}" '
	function quoted(text) {
		gsub(/\*\*|\\/, "", text)
		if (text ~ /[",]/) {
			gsub(/"/, "\"\"", text)
			text = "\"" text "\""
		}
		return text
	}
	# cells splits a row of a table.
	function cells(row, into) {
		sub(/^\| */, "", row)
		sub(/ *\|$/, "", row)
		return split(row, into, / *\| */)
	}
	# record writes a section with a table of networks as data, and says of which kind it is, "" for none.
	function record(    i, n, head, row, file, line, prose, c, kind) {
		for (i = 2; i <= lines; i++)
			if (text[i] ~ /^\| network \|/ && !head[0]) { n = cells(text[i], head); head[0] = i }
			else if (text[i] !~ /^\|/ && text[i] != "") prose = prose (prose == "" ? "" : " ") text[i]
		if (!head[0]) return ""
		kind = head[2] ~ /^vs / ? "" : head[2] == "by time" ? "-instructions" : head[2] == "load" ? "-links" : "none"
		if (kind == "none") return ""
		file = base kind ".csv"
		if (!(kind in begun)) {
			begun[kind] = 1
			if (kind == "") line = "setting,network,against,change,interval,difference,metric,value,verdict,left out"
			else {
				line = "setting"
				for (c = 1; c <= n; c++) line = line "," quoted(head[c])
			}
			print line (kind == "-links" ? "" : ",about") >file
			files = files (files == "" ? "" : ", ") "[" name(file) "](" name(file) ")"
		}
		for (i = head[0] + 2; i <= lines && text[i] ~ /^\|/; i++) {
			if (text[i] ~ /^\| \*[^*]/) continue # a heading within the table
			cells(text[i], row)
			line = quoted(substr(text[1], 5)) "," quoted(row[1])
			if (kind == "") line = line "," quoted(substr(head[2], 4))
			for (c = 2; c <= n; c++) {
				if (kind == "" && c == 5) line = line "," quoted(head[5])
				line = line "," quoted(row[c])
			}
			print line (kind == "-links" ? "" : "," quoted(prose)) >file
		}
		first = head[0] + 2
		return "table" kind head[2]
	}
	function name(file) { sub(/.*\//, "", file); return file }
	# flush ends a section: the first of its kind stays.
	function flush(    i, kind) {
		kind = text[1] ~ /^### / ? record() : ""
		if (kind == "" || !(kind in kept)) {
			if (kind != "") kept[kind] = 1
			for (i = 1; i <= lines; i++)
				if (kind == "" || text[i] !~ /^\|/ || i < first + 20) out[++total] = text[i]
			if (kind != "" && !told) { told = total }
		}
		lines = 0
		delete text
	}
	(/^#/ || /^<\/?details>/) && !fenced { flush() }
	/^```/ { fenced = !fenced }
	{ text[++lines] = $0 }
	END {
		flush()
		for (i = 1; i <= total; i++) {
			print out[i]
			if (i == told) print "That is the first table; the rows of all are in " files ".\n"
		}
	}' "$page" >"$page.new"
	mv "$page.new" "$page"
done
