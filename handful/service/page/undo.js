// Undo and redo of your own actions. They wait their turn behind labels that are on their way.
import { add } from "./outbox.js";
import { mayLabel, state } from "./state.js";
import { tell } from "./bus.js";

const step = (what) => {
  if (!state.project || !mayLabel()) return;
  add(state.project.id, what);
  tell("step", what);
};

export const undo = () => step("undo");
export const redo = () => step("redo");
