"use strict";

/** An element. Children are elements or text; text is never read as HTML. */
function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An element with some style of its own; the policy of the page allows none in attributes. */
function styled(node, style) {
  Object.assign(node.style, style);
  return node;
}

/** A number in three significant digits, with a true minus. */
function short(value) {
  const text = value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : value.toPrecision(3);
  return text.replace("-", "−");
}
