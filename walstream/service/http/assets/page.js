"use strict";
// Fetches this page every two seconds and replaces what has changed: the server computes
// all numbers, as without JavaScript, and focus, selection and scrolling stay.
const EVERY_MS = 2000;
const lives = (root) => [...root.querySelectorAll("[data-k]")];
const keys = (root) => lives(root).map((one) => one.dataset.k).join("\n");
const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };

function take(fresh) {
  const main = document.querySelector("main"), next = fresh.querySelector("main");
  if (keys(main) !== keys(next)) {
    main.innerHTML = next.innerHTML;
  } else {
    const found = lives(next);
    lives(main).forEach((one, index) => {
      const other = found[index];
      if (one.innerHTML !== other.innerHTML) one.innerHTML = other.innerHTML;
      for (const { name, value } of other.attributes) {
        if (one.getAttribute(name) !== value) one.setAttribute(name, value);
      }
    });
  }
  for (const id of ["verdict", "since"]) {
    const one = document.getElementById(id), other = fresh.getElementById(id);
    one.className = other.className;
    say(one, other.textContent);
  }
  document.title = fresh.title;
}

async function look() {
  try {
    const answer = await fetch(location.pathname + location.search, { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(answer.status);
    take(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    const verdict = document.getElementById("verdict");
    verdict.className = "verdict bad";
    say(verdict, "✗ walstream does not answer: the figures below are old");
    document.title = "✗ walstream does not answer";
  }
  setTimeout(look, EVERY_MS);
}
setTimeout(look, EVERY_MS);
