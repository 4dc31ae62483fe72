// Where the page is: #/p/PROJECT/VIEW?settings. Reloading and going back lose nothing.
export function here() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const [, area, project = null, view = "label"] = path.split("/");
  const known = area === "p" && /^[0-9a-f]{24}$/.test(project ?? "");
  return { project: known ? project : null, view: known ? view : "projects", query: new URLSearchParams(query) };
}

/** The address of a view. */
export function link(project, view, query = {}) {
  const settings = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") settings.set(name, value);
  const tail = settings.toString();
  return project ? `#/p/${project}/${view}${tail && `?${tail}`}` : "#/";
}

export const go = (project, view, query) => (location.hash = link(project, view, query));

/** Changes the settings in the address, without a step to go back to. */
export function keep(query) {
  const { project, view } = here();
  history.replaceState(null, "", link(project, view, query));
}
