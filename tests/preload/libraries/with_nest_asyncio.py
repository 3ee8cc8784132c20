"""Patches asyncio before torch has imported it."""

import asyncio
import nest_asyncio

nest_asyncio.apply()
import torch


async def main():
    return asyncio.run(asyncio.sleep(0, torch.ones(2).tolist()))


print(asyncio.run(main()), asyncio.run.__module__)
