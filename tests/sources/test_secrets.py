"""Secrets stay out by name and by content; what only talks about them stays in."""

from __future__ import annotations

import pytest

from outcrop.sources.secrets import secret_by_content, secret_by_name

BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n" * 4
# Put together here, so that this file holds no key's first line itself.
KEY = f"-----BEGIN {'PRIVATE'} KEY-----\n{BODY}-----END PRIVATE KEY-----\n"
SEALED = f"-----BEGIN RSA {'PRIVATE'} KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0\n\n{BODY}"


@pytest.mark.parametrize(
    "path",
    [
        *(".env", ".env.local", "deploy/.env.production", "prod.env", ".envrc", ".env-staging"),
        *("id_rsa", ".ssh/id_ed25519", "home/.ssh/deploy", "id_rsa.bak", "ssh_host_rsa_key"),
        *("server.pem", "tls/server.key", "store.p12", "store.PFX", "app.jks", "vault.kdbx", "client.ovpn"),
        *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd", ".s3cfg", ".boto"),
        *(".aws/credentials", "x/.docker/config.json", ".kube/config", "kubeconfig.yaml", ".config/gcloud/x.json"),
        *(
            "secrets.yaml",
            "secrets.yml",
            "config/secrets.json",
            "k8s-secret.yaml",
            "credentials.json",
            "client_secret_1.json",
        ),
        *("terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", "service-account.json", "master.key"),
    ],
)
def test_names_that_promise_secrets(path: str) -> None:
    assert secret_by_name(path)


@pytest.mark.parametrize(
    "path",
    [
        *(".env.example", ".env.sample", ".env.template", ".env.dist", "example.env", "secrets.example.yaml"),
        *("id_rsa.pub", "environment.yml", "secrets.py", "secret_store.go", "docs/secrets.md", "credentials.md"),
        *("keys.py", "keyboard.json", ".ssh/config", ".aws/config", "kubeconfig.py", "book.asc", ".npmrc"),
        *("src/.env/readme.md", "google_keyboard.json", "secretary.json", "token.json"),
    ],
)
def test_names_that_do_not(path: str) -> None:
    assert secret_by_name(path) is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (KEY, "notes.txt"),
        (SEALED, "backup"),
        (f"Bag Attributes\n    friendlyName: x\n{KEY}", "bundle.txt"),
        (f'KEY = """{KEY}"""\n', "test_tls.py"),
        ('key = "' + KEY.replace("\n", '\\n"\n"'), "tls.c"),
        ('{"type": "service_account", "private_key": "' + KEY.replace("\n", "\\n") + '"}', "robot.json"),
        ("PuTTY-User-Key-File-2: ssh-rsa\n", "key.txt"),
        ("//registry.npmjs.org/:_authToken=npm_abcdef\n", ".npmrc"),
        ("[pypi]\nusername = __token__\npassword = pypi-AgEIcHl\n", ".pypirc"),
        ('{"refresh_token": "1//0g"}', "token.json"),
        ("[global]\nindex-url = https://user:word@pypi.example.org/\n", "pip.conf"),
    ],
)
def test_contents_that_are_secrets(text: str, path: str) -> None:
    assert secret_by_content(text, path)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f'if line == "-----BEGIN {"PRIVATE"} KEY-----":\n    return parse(line)\n' + "x = 1\n" * 9, "pem.py"),
        (f"A key starts with `-----BEGIN RSA {'PRIVATE'} KEY-----`. It goes on with base64.\n", "pem.md"),
        (f"-----BEGIN CERTIFICATE-----\n{BODY}-----END CERTIFICATE-----\n", "ca.txt"),
        ("registry=https://registry.npmjs.org/\n//host/:_authToken=${NPM_TOKEN}\n", ".npmrc"),
        ("[distutils]\nindex-servers = pypi\n", ".pypirc"),
        ("//registry.npmjs.org/:_authToken=npm_abcdef\n", "README.md"),
    ],
)
def test_contents_that_are_not(text: str, path: str) -> None:
    assert secret_by_content(text, path) is None


def test_the_line_of_a_key_is_named() -> None:
    assert secret_by_content(f"a\nb\n{KEY}", "x.txt") == "holds a private key, line 3"
