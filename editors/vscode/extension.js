// Starts the language server that `umklapp lsp` is.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("umklapp").get("path");
  const server = { command, args: ["lsp"] };
  client = new LanguageClient("umklapp", "Umklapp", server, { documentSelector: [{ language: "rhai" }] });
  return client.start();
};

exports.deactivate = () => client?.stop();
