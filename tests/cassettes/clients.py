"""The HTTP clients that SDKs speak through, each as one function: post JSON, get status and text."""

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import aiohttp
import httpx
import httpx2
import requests

# Nothing is encrypted here, and reading the certificates takes longer than the test.
_OPTIONS = {"timeout": 5, "verify": False}


def _httpx(url, body, headers):
    with httpx.Client(**_OPTIONS) as client:
        answer = client.post(url, json=body, headers=headers)
    return answer.status_code, answer.text


async def _httpx_async(url, body, headers):
    async with httpx.AsyncClient(**_OPTIONS) as client:
        answer = await client.post(url, json=body, headers=headers)
    return answer.status_code, answer.text


def _httpx2(url, body, headers):
    with httpx2.Client(**_OPTIONS) as client:
        answer = client.post(url, json=body, headers=headers)
    return answer.status_code, answer.text


async def _httpx2_async(url, body, headers):
    async with httpx2.AsyncClient(**_OPTIONS) as client:
        answer = await client.post(url, json=body, headers=headers)
    return answer.status_code, answer.text


def _requests(url, body, headers):
    with requests.Session() as session:
        answer = session.post(url, json=body, headers=headers, timeout=5)
    return answer.status_code, answer.text


async def _aiohttp(url, body, headers):
    async with aiohttp.ClientSession() as session, session.post(url, json=body, headers=headers) as answer:
        return answer.status, await answer.text()


def _urllib(url, body, headers):
    request = urllib.request.Request(  # noqa: S310 - the address is the test's own
        url, json.dumps(body).encode(), {"content-type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def _http_client(url, body, headers):
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=5)
    connection.request(
        "POST", address.path, json.dumps(body), {"content-type": "application/json", **headers}
    )
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


SYNC = {
    "httpx": _httpx,
    "httpx2": _httpx2,
    "requests": _requests,
    "urllib": _urllib,
    "http.client": _http_client,
}
ASYNC = {"httpx-async": _httpx_async, "httpx2-async": _httpx2_async, "aiohttp": _aiohttp}
WAYS = [*SYNC, *ASYNC]


async def post_async(way, url, body, headers=None):
    """Post inside a running event loop."""
    return await ASYNC[way](url, body, headers or {})


def post(way, url, body, headers=None):
    """Post, in an event loop of its own where the client needs one."""
    if way in ASYNC:
        return asyncio.run(post_async(way, url, body, headers))
    return SYNC[way](url, body, headers or {})
