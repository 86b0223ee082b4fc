"use strict";

// The script of every page: copy buttons, tabs of languages, colors of code, search, requests to try, and the host and
// the sandbox key in examples. Without it the pages have the same text. It is in the page itself, and its hash in the policy.
(() => {
  const root = new URL(document.body.dataset.root, location.href); // of the guide: BASE/docs/
  const bank = new URL("..", root).href.replace(/\/$/, "");
  const isSandbox = "sandbox" in document.body.dataset;
  const kept = (name, value) => {
    try {
      if (value !== undefined) localStorage.setItem(name, value);
      return localStorage.getItem(name) ?? "";
    } catch {
      return ""; // storage is switched off
    }
  };
  const element = (tag, values, ...children) => {
    const made = Object.assign(document.createElement(tag), values);
    made.append(...children);
    return made;
  };

  // Host and key. The texts of the page are the source, so that a new key changes them again.
  const blocks = [...document.querySelectorAll("pre > code")].map((code) => ({ code, source: code.textContent }));
  const filled = (source) => {
    const key = isSandbox ? kept("sandbox-key") : "";
    source = source.replaceAll("https://HOST", bank).replace(/^Host: HOST$/gm, `Host: ${new URL(bank).host}`);
    if (!key) return source;
    return source
      .replace(/\$\(curl [^\n]*\/_sandbox\/keys[^\n]*\)/g, key)
      .replaceAll("Ocp-Apim-Subscription-Key: your key", `Ocp-Apim-Subscription-Key: ${key}`)
      .replaceAll(/^export KEY=\$\(cat [^\n]*\)$/gm, `export KEY=${key}`);
  };

  // Colors. A token is a comment, a text, a number or a word of the language.
  const words =
    /^(?:async|await|break|case|catch|class|const|continue|def|defer|do|done|else|except|export|false|fi|finally|for|from|func|function|if|import|in|let|new|nil|null|package|private|public|raise|range|return|static|string|switch|then|throw|throws|true|try|type|using|var|void|while|with)$/;
  const token = /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)|((?:^|(?<=\s))(?:#|\/\/)[^\n]*|\/\*[\s\S]*?\*\/)|(\b\d+(?:\.\d+)?\b)|([A-Za-z_]\w*)/g;
  const color = (code, text) => {
    code.replaceChildren();
    let end = 0;
    for (const match of text.matchAll(token)) {
      const kind = match[1] ? "text" : match[2] ? "comment" : match[3] ? "number" : words.test(match[4]) ? "word" : "";
      if (!kind) continue;
      code.append(text.slice(end, match.index), element("span", { className: `code-${kind}` }, match[0]));
      end = match.index + match[0].length;
    }
    code.append(text.slice(end));
  };
  const fill = () => {
    for (const { code, source } of blocks) {
      if (code.parentElement.dataset.language) color(code, filled(source));
      else code.textContent = filled(source);
    }
  };
  fill();

  // Copy buttons.
  for (const { code } of blocks) {
    const pre = code.parentElement;
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code); // a page without TLS may not use the clipboard
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    const frame = element("div", { className: "code" });
    pre.replaceWith(frame);
    frame.append(pre, button);
  }

  // Tabs: blocks of code in different languages that follow each other.
  const names = { sh: "curl", go: "Go", js: "JavaScript", python: "Python", java: "Java", csharp: "C#" };
  const languageOf = (frame) => frame?.matches?.(".code") && names[frame.firstElementChild.dataset.language];
  const groups = [];
  const choose = (name) => {
    for (const { frames, tabs } of groups) {
      const chosen = frames.some((frame) => languageOf(frame) === name) ? name : languageOf(frames[0]);
      frames.forEach((frame, i) => {
        const isChosen = languageOf(frame) === chosen;
        frame.hidden = !isChosen;
        tabs[i].setAttribute("aria-selected", isChosen);
        tabs[i].tabIndex = isChosen ? 0 : -1;
      });
    }
  };
  for (const first of document.querySelectorAll("main .code")) {
    if (!languageOf(first) || languageOf(first.previousElementSibling)) continue;
    const frames = [];
    for (let next = first; languageOf(next); next = next.nextElementSibling) frames.push(next);
    if (frames.length < 2) continue;
    const tabs = frames.map((frame, i) => {
      const id = `code-${groups.length}-${i}`;
      frame.id = id;
      frame.setAttribute("role", "tabpanel");
      frame.setAttribute("aria-label", languageOf(frame));
      const tab = element("button", { type: "button", textContent: languageOf(frame) });
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", id);
      tab.addEventListener("click", () => choose(kept("language", languageOf(frame)) || languageOf(frame)));
      return tab;
    });
    const list = element("div", { className: "tabs" }, ...tabs);
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Language");
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
    first.before(list);
    groups.push({ frames, tabs });
  }
  choose(kept("language"));

  // A key of the sandbox, where the first example of a page needs one.
  const needsKey = blocks.find(({ source }) => /\$KEY|your key|BANK_KEY/.test(source));
  const start = isSandbox && (document.getElementById("start") ?? needsKey?.code.closest(".code").previousElementSibling);
  if (start) {
    const said = element("span", {});
    said.setAttribute("role", "status");
    const tell = () => (said.textContent = kept("sandbox-key") ? ` The examples have your key ${kept("sandbox-key")}.` : "");
    const button = element("button", { type: "button", textContent: "Get a sandbox key" });
    button.addEventListener("click", async () => {
      try {
        const answer = await fetch(`${bank}/_sandbox/keys`, { method: "POST" });
        const made = await answer.json();
        if (!answer.ok) throw new Error(made.detail);
        kept("sandbox-key", made.key);
        tell();
        fill();
        const field = document.getElementById("key");
        if (field) field.value = made.key;
      } catch (error) {
        said.textContent = ` There is no key: ${error.message}`;
      }
    });
    tell();
    start.after(element("p", { className: "key" }, button, said));
  }

  // Requests to try. The answer is shown as it came, so that no number is changed.
  const title = document.getElementById("try-it-out");
  if (title) {
    const key = element("input", { id: "key", autocomplete: "off", spellcheck: false, value: isSandbox ? kept("sandbox-key") : "" });
    title.nextElementSibling.after(element("p", {}, element("label", { htmlFor: "key", textContent: "Your subscription key" }), key));
    for (const { code } of blocks) {
      const frame = code.closest(".code");
      let heading = frame.previousElementSibling; // the button for a key may follow it
      while (heading.localName !== "h2") heading = heading.previousElementSibling;
      const about = heading.firstChild.textContent.trim();
      const request = element("textarea", { spellcheck: false, value: code.textContent, rows: code.textContent.split("\n").length });
      request.setAttribute("aria-label", `${about}: the request`);
      const answer = element("pre", { tabIndex: 0, hidden: true });
      answer.setAttribute("role", "status");
      answer.setAttribute("aria-label", `${about}: the answer`);
      const send = element("button", { type: "button", textContent: "Send" });
      send.addEventListener("click", async () => {
        const [head, body] = request.value.split(/\n\n([^]*)/);
        const [first, ...lines] = head.split("\n");
        const [method, path] = first.split(" ");
        const headers = lines.map((line) => line.split(/: *(.*)/, 2)).filter(([name]) => name && !/^host$/i.test(name));
        for (const header of headers) if (header[1] === "your key") header[1] = key.value.trim();
        const begun = performance.now();
        answer.hidden = false;
        answer.textContent = "Sending ...";
        try {
          const got = await fetch(bank + path, { method, headers, body: /^(GET|HEAD)$/.test(method) ? undefined : body });
          const text = await got.text();
          const took = Math.round(performance.now() - begun);
          answer.textContent = [`${got.status} after ${took} ms`, ...[...got.headers].map((header) => header.join(": ")), "", text].join("\n");
        } catch (error) {
          answer.textContent = `There was no answer: ${error.message}`;
        }
      });
      frame.replaceWith(request, element("p", {}, send), answer);
    }
  }

  // Search over all pages. The text of the guide is loaded once, when it is needed.
  const field = element("input", { type: "search", placeholder: "Search pages and codes" });
  field.setAttribute("aria-label", "Search pages and codes");
  const results = element("ul", { className: "results" });
  const count = element("p", { className: "count" });
  count.setAttribute("role", "status");
  const stem = (word) => (word.length > 5 ? word.replace(/(?:ations?|ings?|ments?|ies|ed|es|s|y)$/, "") : word);
  let sections;
  const load = async () => {
    const text = await (await fetch(new URL("llms-full.txt", root))).text();
    sections = text.split(/^Source: /m).slice(1).flatMap((page) => {
      const slug = page.slice(0, page.indexOf(".md"));
      const link = slug === "index" ? "../docs" : slug.replace(/(^|\/)index$/, "$1");
      const title = /^# (.*)$/m.exec(page)[1];
      const also = (/^Also: (.*)$/m.exec(page) ?? ["", ""])[1].toLowerCase();
      return page.replace(/^Also: .*$/m, "").split(/^(?=## )/m).map((part, i) => {
        const [heading, anchor] = i ? /^## (.*?)(?: \{#([\w-]+)\})?$/m.exec(part).slice(1) : ["", ""];
        const name = heading ? `${title}: ${heading}` : title;
        return { name, link: link + (anchor ? `#${anchor}` : ""), in: name.toLowerCase(), also: i ? "" : also, text: part.toLowerCase() };
      });
    });
  };
  field.addEventListener("input", async () => {
    if (!sections) await (load.running ??= load());
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    // A word finds all words that begin with its stem: rounding finds rounded.
    const begins = wanted.map((word) => new RegExp(`(?<![a-z0-9])${stem(word).replace(/[^a-z0-9]/g, "\\$&")}`));
    const found = wanted.length ? sections.filter((s) => begins.every((word) => word.test(s.text) || word.test(s.also))) : [];
    const score = (s) =>
      begins.filter((word) => word.test(s.in)).length * 3 + begins.filter((word) => word.test(s.also)).length * 2 + (s.in === wanted.join(" ") ? 9 : 0);
    found.sort((a, b) => score(b) - score(a));
    results.replaceChildren(
      ...found.slice(0, 12).map((s) => element("li", {}, element("a", { href: new URL(s.link, root).href, textContent: s.name }))),
    );
    count.textContent = wanted.length ? (found.length ? `${found.length} found` : "Nothing found") : "";
  });
  const search = element("search", {}, field, count, results);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") field.value = "", field.dispatchEvent(new Event("input"));
  });
  document.querySelector("header").append(search);
})();
