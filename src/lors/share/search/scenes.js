"use strict";

/**
 * Answers that were computed beforehand: every query that the grammar of the built-in scenes knows.
 * A query is one word, or none, of each slot; its number is written in the mixed base of the slots.
 */
function prepared(local) {
  const words = new Map();
  local.slots.forEach((slot, place) =>
    slot.forEach(([word, meaning], number) => words.set(word, { place, number: number + 1, meaning })),
  );
  const phrases = [...words.keys()].filter((word) => word.includes(" "));

  function parsed(query) {
    let text = query.toLowerCase();
    for (const phrase of phrases) text = text.replaceAll(phrase, phrase.replace(" ", "_"));
    const chosen = new Map(), unknown = [], twice = [];
    for (const raw of text.split(/[^a-z_]+/).filter(Boolean)) {
      const word = raw.replace("_", " ");
      const single = word.replace(/s$/, "");
      const found = words.get(word) ?? words.get(single);
      if (found === undefined) {
        if (!local.ignored.includes(word)) unknown.push(raw);
      } else if (chosen.has(found.place) && found.meaning !== null) {
        twice.push(word);
      } else if (!chosen.has(found.place)) {
        chosen.set(found.place, { ...found, word });
      }
    }
    return { chosen, unknown, twice };
  }

  /** Whether a picture shows what the words say: one object with all of it, and the background. */
  function fits(scene, chosen) {
    const wanted = (object) =>
      object.every((meaning, place) => {
        const word = chosen.get(place);
        return word === undefined || word.meaning === null || word.meaning === meaning;
      });
    const background = chosen.get(local.slots.length - 1);
    return (background === undefined || background.meaning === scene.background) && scene.objects.some(wanted);
  }

  return async function ask(query) {
    const { chosen, unknown, twice } = parsed(query);
    if (chosen.size === 0) {
      return { columns: [], message: `The built-in scenes are made of shapes and colours. Try “${local.example}”.` };
    }
    let number = 0;
    local.slots.forEach((slot, place) => {
      number = number * (slot.length + 1) + (chosen.get(place)?.number ?? 0);
    });
    const width = 2 * local.count;
    const columns = local.answers.map((text) => {
      const row = text.slice(number * width, (number + 1) * width);
      return Array.from({ length: local.count }, (_, rank) => {
        const photo = parseInt(row.slice(2 * rank, 2 * rank + 2), 36);
        return { photo, name: local.captions[photo], caption: local.captions[photo], fits: fits(local.scenes[photo], chosen) };
      });
    });
    const used = [...chosen.values()].map(({ word }) => word);
    const left = [...unknown, ...twice];
    const total = local.scenes.filter((scene) => fits(scene, chosen)).length;
    const message =
      `${total} of the ${local.scenes.length} test scenes show it (marked ✓).` +
      (left.length ? ` Searched for ${used.join(", ")}; this page has no answers for ${left.join(", ")}.` : "");
    return { columns, message };
  };
}
