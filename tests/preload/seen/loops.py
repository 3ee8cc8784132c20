import asyncio


async def main():
    await asyncio.sleep(0)
    process = await asyncio.create_subprocess_exec("true")
    return await process.wait()


print(asyncio.run(main()))
