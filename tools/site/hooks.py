"""Lays out the site: its navigation is the order of docs/README.md, and links to folders lead to the lists of their pages."""

import posixpath
import re
from pathlib import Path

LINK = re.compile(r"\]\(([^)#\s]+?)/?(#[^)\s]*)?\)")
SECTIONS = {"docs/adr": "Decisions", "docs/results": "Results"}


def linked(page):
    """The pages that a page links to, in order."""
    folder = page.parent
    for target, _ in LINK.findall(page.read_text()):
        if target.endswith(".md") and ":" not in target:
            yield posixpath.normpath(posixpath.join(folder.as_posix(), target))


def on_config(config):
    root = Path(config.docs_dir)
    nav, known = [{"Start": "README.md"}], {"README.md", "docs/README.md"}

    def fresh(pages):
        new = [p for p in dict.fromkeys(pages) if p not in known]
        known.update(new)
        return new

    listing = (root / "docs/README.md").read_text()
    index = ["docs/README.md"]
    for part in re.split(r"^## ", listing, flags=re.M)[1:]:
        title, _, text = part.partition("\n")
        pages = [
            posixpath.normpath(posixpath.join("docs", target)) for target, _ in LINK.findall(text) if target.endswith(".md") and ":" not in target
        ]
        nav.append({title.partition(":")[0]: fresh(p for p in pages if not p.startswith(tuple(SECTIONS)))})
    everything = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.md"))
    for folder, title in SECTIONS.items():
        pages = [p for p in everything if p.startswith(folder + "/") and not p.endswith("/README.md")]
        nav.append({title: fresh([folder + "/README.md", *pages])})
    nav.append({"Project": fresh([*index, "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", *everything]) + index})
    config.nav = nav
    return config


def on_page_markdown(markdown, page, config, files):
    """Links to a folder lead to its README.md, which scripts/site.sh writes where there is none. What can be folded is Markdown, too."""
    folder = posixpath.dirname(page.file.src_uri)

    def page_of(match):
        target, anchor = match.group(1), match.group(2) or ""
        if ":" not in target and (Path(config.docs_dir) / posixpath.normpath(posixpath.join(folder, target))).is_dir():
            return f"]({target}/README.md{anchor})"
        return match.group(0)

    return LINK.sub(page_of, markdown.replace("<details>", '<details markdown="1">'))
