// Searches kilnGuide (index.js): one row per heading, [page, title, anchor, heading, text]. No network.
"use strict";
(function () {
    const root = document.body.dataset.root;
    const input = document.getElementById("search");
    const list = document.getElementById("found");

    // All words must occur; the title and the heading count more than the text.
    function score(row, words) {
        const [, title, , heading, text] = row.map((part) => part.toLowerCase());
        let sum = 0;
        for (const word of words) {
            const found = (title.includes(word) ? 4 : 0) + (heading.includes(word) ? 8 : 0) + (text.includes(word) ? 1 : 0);
            if (found === 0) {
                return 0;
            }
            sum += found;
        }
        return sum;
    }

    function excerpt(text, word) {
        const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
        return (at > 0 ? "…" : "") + text.slice(at, at + 140) + (at + 140 < text.length ? "…" : "");
    }

    function show() {
        const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
        const rows = kilnGuide.map((row) => [score(row, words), row]).filter(([points]) => words.length > 0 && points > 0);
        rows.sort((a, b) => b[0] - a[0]);
        list.replaceChildren();
        for (const [, [page, title, anchor, heading, text]] of rows.slice(0, 20)) {
            const link = document.createElement("a");
            link.href = root + page + (anchor ? "#" + anchor : "");
            link.textContent = heading === title ? title : title + " › " + heading;
            const small = document.createElement("small");
            small.textContent = excerpt(text, words[0]);
            link.append(small);
            const item = document.createElement("li");
            item.append(link);
            list.append(item);
        }
        if (words.length > 0 && rows.length === 0) {
            const item = document.createElement("li");
            item.textContent = "Nothing found.";
            list.append(item);
        }
        list.hidden = words.length === 0;
    }

    input.addEventListener("input", show);
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && document.activeElement !== input) {
            event.preventDefault();
            input.focus();
        } else if (event.key === "Escape") {
            input.value = "";
            show();
        } else if (event.key === "Enter" && document.activeElement === input && list.querySelector("a")) {
            list.querySelector("a").click();
        }
    });
    document.addEventListener("click", (event) => {
        if (!event.target.closest("header")) {
            list.hidden = true;
        }
    });
    const asked = new URLSearchParams(location.search).get("q");
    if (asked) {
        input.value = asked;
        show();
    }
})();
