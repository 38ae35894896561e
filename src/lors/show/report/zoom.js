/** A picture that opens large when it is clicked, or by Enter; Escape closes it. */
function zoomable(source, alt) {
  const image = el("img", { src: source, alt, decoding: "async" });
  const button = el("button", { type: "button", class: "zoom", title: "Enlarge" }, image);
  button.addEventListener("click", () => enlarge(source, alt));
  return button;
}

function enlarge(source, alt) {
  const close = el("button", { type: "button", class: "close" }, "Close");
  const image = el("img", { src: source, alt: "" });
  const large = el("dialog", { class: "large", "aria-label": "Enlarged picture" }, image, el("p", {}, alt), close);
  image.addEventListener("load", () => image.classList.toggle("pixels", image.naturalWidth <= 64));
  large.addEventListener("click", (event) => {
    if (event.target !== image) large.close();
  });
  large.addEventListener("close", () => large.remove());
  document.body.append(large);
  large.showModal();
}
