// Shows openapi.json: every route by its tag, with its parameters and bodies. Texts are set, never parsed as HTML.
const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};

const resolve = (schema, all, depth = 0) => {
  if (!schema || depth > 6) return schema;
  if (schema.$ref) return resolve(all[schema.$ref.split("/").pop()], all, depth + 1);
  if (Array.isArray(schema)) return schema.map((one) => resolve(one, all, depth + 1));
  if (typeof schema === "object")
    return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, resolve(value, all, depth + 1)]));
  return schema;
};

const route = (path, method, operation, all) => {
  const details = make("details");
  const summary = make("summary");
  summary.append(make("code", method.toUpperCase(), "method"), make("code", path), make("span", ` ${operation.summary ?? ""}`));
  details.append(summary, make("p", operation.description ?? ""));
  const parameters = (operation.parameters ?? []).map((one) => `${one.name} (${one.in}${one.required ? ", required" : ""}) ${one.description ?? ""}`);
  if (parameters.length) {
    const list = make("ul");
    parameters.forEach((one) => list.append(make("li", one)));
    details.append(list);
  }
  for (const [media, content] of Object.entries(operation.requestBody?.content ?? {}))
    details.append(make("p", `Body: ${media}`), make("pre", JSON.stringify(resolve(content.schema, all), null, 1)));
  return details;
};

const main = document.getElementById("routes");
try {
  const api = await (await fetch("openapi.json")).json();
  const all = api.components?.schemas ?? {};
  const groups = {};
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, operation] of Object.entries(methods))
      (groups[operation.tags?.[0] ?? "other"] ??= []).push(route(path, method, operation, all));
  main.replaceChildren();
  for (const [tag, routes] of Object.entries(groups)) main.append(make("h2", tag), ...routes);
} catch (error) {
  main.textContent = `The description cannot be read (${error.message}): reload the page.`;
}
